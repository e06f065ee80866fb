"""Progress of a learner: marked, taken elsewhere, without barriers, by the server and the static export."""

import json

import pytest
from axe_playwright_python.sync_playwright import Axe
from learning_steps import bring_in, choose, export, form, learn_a_little, submit, waits_for

pytestmark = pytest.mark.browser


def test_a_lesson_is_marked_as_read_and_not(study):
    here = study()
    page = here.open("first/")
    page.get_by_role("button", name="Mark as read").click()
    page.get_by_role("button", name="Marked as read – undo").wait_for()
    assert page.locator("[data-mark]").inner_text() == "Marked as read – undo"  # said once
    here.open("")
    assert "read" in page.locator("[data-progress-of=first] [data-progress]").inner_text()
    here.open("first/")
    page.get_by_role("button", name="Marked as read – undo").click()
    page.get_by_role("button", name="Mark as read").wait_for()
    assert "No longer marked as read." in page.locator("[data-mark]").inner_text()
    here.open("")
    assert page.locator("[data-progress-of=first] [data-progress]").inner_text() == ""


# 4skinSkywalker/Syllogimous-v4#30
def test_progress_goes_from_anywhere_to_anywhere(study, learner, exported, tmp_path):
    here = study()
    learn_a_little(here)
    made = export(here, tmp_path / "progress.json")
    assert [len(made[kind]) for kind in ("reviews", "undos", "answers", "marks")] == [1, 0, 1, 1]
    there = learner(exported)  # another browser, which knows nothing
    told = bring_in(there, tmp_path / "progress.json")
    assert told == "Added 1 review, 1 answer, 1 mark."
    again = export(there, tmp_path / "again.json")
    for name in ("reviews", "undos", "answers", "marks", "settings"):
        assert again[name] == made[name]
    assert "3 entries were there already" in bring_in(here, tmp_path / "again.json")
    page = there.open("deck/")
    waits_for(page, "1 new card. 1 review today.")


# azavea/nyc-trees#1399
def test_two_browsers_of_a_static_site_do_not_mix(learner, exported):
    one, other = learner(exported), learner(exported)
    learn_a_little(one)
    waits_for(other.open("deck/"), "2 new cards.")


@pytest.mark.parametrize("fault", ["cut", "rating", "other"])
def test_a_broken_file_changes_nothing_and_is_told(study, tmp_path, fault):
    here = study(expected=[422])
    learn_a_little(here)
    made = export(here, tmp_path / "progress.json")
    text = json.dumps(made)
    broken = {
        "cut": text[:-40],
        "rating": text.replace('"rating": 4', '"rating": 9'),
        "other": json.dumps({"format": "another"}),
    }[fault]
    (tmp_path / "broken.json").write_text(broken)
    told = bring_in(here, tmp_path / "broken.json")
    assert "othing was changed" in told
    after = export(here, tmp_path / "after.json")
    made.pop("exported"), after.pop("exported")
    assert after == made


def test_settings_are_kept_and_matter(study):
    here = study()
    page = here.open("progress/")
    page.get_by_label("New cards a day").fill("1")
    page.get_by_label("A day begins at").fill("05:30")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved.").wait_for()
    page = here.open("progress/")
    assert page.get_by_label("A day begins at").input_value() == "05:30"
    waits_for(here.open("deck/"), "1 new card.")


def test_a_phone_and_no_colours_are_enough(study):
    here = study(viewport={"width": 320, "height": 640}, forced_colors="active")
    page = here.open("first-quiz/")
    choose(page, "how-wide", "512")
    submit(page, "how-wide")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    for path in ("deck/", "progress/"):
        page = here.open(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_while_learning(study, scheme):
    here = study(color_scheme=scheme)
    page = here.open("first-quiz/")
    choose(page, "how-wide", "512")
    submit(page, "how-wide")
    choose(page, "which-hold", "This", "That")
    submit(page, "which-hold")
    form(page, "how-many").get_by_role("textbox").fill("1")
    submit(page, "how-many")
    assert violations(page) == []
    page = here.open("deck/")
    page.locator(".review-keys summary").click()
    page.get_by_role("button", name="Review 2 cards").click()
    page.keyboard.press("Space")
    page.wait_for_selector(".review-back")
    assert violations(page) == []
    assert violations(here.open("progress/")) == []


def violations(page):
    page.wait_for_timeout(300)  # transitions of colours
    found = Axe().run(page).response["violations"]
    return [(one["id"], [node["target"] for node in one["nodes"]]) for one in found]
