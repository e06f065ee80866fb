"""docs/results.md: what the applications reach, written from the folders of their runs.

sections       what each section is about: its data, what it must reach, what others published
collect        from a run's folder to facts: command, counts, time, evaluations
examples       the outputs of a run, how good each is, and which five are shown
heads          what each head does on held-out inputs, and words for it
drawn          which heads are drawn, and on which input
pictures       learning curves, alignments, attention over images
page           from facts to the page
guide_facts    the study guide's facts about results, from the same
ablation_page  its section about the runs of `benchmarks.ablation`
"""
