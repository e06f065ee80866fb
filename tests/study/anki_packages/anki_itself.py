"""Anki itself, with a collection of the test's own, fed by its own importer."""

from __future__ import annotations

from anki.collection import Collection, ImportAnkiPackageOptions, ImportAnkiPackageRequest


class Anki:
    """A learner's collection."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.col = Collection(str(folder / "collection.anki2"))

    def close(self):
        self.col.close()

    def read(self, package):
        """Import a package; how many notes were new, updated, and there already."""
        options = ImportAnkiPackageOptions(
            merge_notetypes=True, with_scheduling=False, with_deck_configs=False
        )
        log = self.col.import_anki_package(
            ImportAnkiPackageRequest(package_path=str(package), options=options)
        ).log
        return len(log.new), len(log.updated), len(log.duplicate)

    def notes(self):
        """Notes by the id that the guide gives their card."""
        found = (self.col.get_note(id) for id in self.col.find_notes(""))
        return {note["Id"]: note for note in found}

    def card(self, name):
        (card,) = self.notes()[name].cards()
        return card
