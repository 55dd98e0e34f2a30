"""Made text: the same bytes from the same seed, speakers who own what they say, and a next character worth a memory."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

from fedbounds.bounds.errors import FedboundsError
from fedbounds.empirical.data.datasets import characters, checksum, load_dataset
from fedbounds.empirical.data.synthetic_sequences import ALPHABET, draw_characters
from fedbounds.empirical.problems import problem_from_spec

SMALL = {"kind": "characters", "train": 60, "test": 30, "steps": 8, "speakers": 6}


def test_the_bytes_are_those_of_every_other_machine():
    assert checksum(load_dataset(SMALL)) == "151e8d014b8d73c3969f637d1327c2928293e301da8b6d6d55c1d8827bed303e"
    assert checksum(load_dataset(SMALL | {"seed": 1})) != checksum(load_dataset(SMALL))


def test_a_smaller_set_is_the_beginning_of_a_larger_one_and_a_caller_may_write_into_it():
    small, large = characters(50, 20, speakers=10), characters(300, 40, speakers=10)
    np.testing.assert_array_equal(small.train_images, large.train_images[:50])
    np.testing.assert_array_equal(small.test_labels, large.test_labels[:20])
    small.train_images[:] = small.train_labels[:] = 0
    np.testing.assert_array_equal(characters(50, 20, speakers=10).train_labels, large.train_labels[:50])


def test_a_row_is_a_character_and_the_label_is_the_one_after_them():
    data = characters(200, 10, steps=12, speakers=5)
    text, speaker = draw_characters(0, 0, 200, 12, 5)
    assert data.image == (1, 12, 27) and data.classes == len(ALPHABET) == 27
    assert (data.train_images.sum(3) == 1).all() and data.standardised()[0] is data.train_images
    np.testing.assert_array_equal(data.train_images[:, 0].argmax(2), text[:, :12])
    np.testing.assert_array_equal(data.train_labels, text[:, 12])
    np.testing.assert_array_equal(data.owners, speaker)
    words = [word for row in text for word in "".join(ALPHABET[k] for k in row).split(" ")[1:-1]]
    assert all(len(word) > 1 for word in words) and len(set(words)) > 50


def test_speakers_have_favorites():
    text, speaker = draw_characters(0, 0, 3000, 40, 3)
    said = [Counter(word for row in text[speaker == k] for word in "".join(ALPHABET[c] for c in row).split(" ")[1:-1])
            for k in range(3)]  # fmt: skip
    for k, own in enumerate(said):
        favorites = {word for word, count in own.most_common(10)}
        share = [sum(other[word] for word in favorites) / sum(other.values()) for other in said]
        assert share[k] > 0.4 and share[k] == max(share)


def test_the_more_characters_one_remembers_the_better_one_knows_the_next():
    data = characters(20_000, 2000)
    seen, tested = (images[:, 0].argmax(2) for images in (data.train_images, data.test_images))

    def accuracy(length):
        after = defaultdict(Counter)
        for row, label in zip(seen.tolist(), data.train_labels.tolist(), strict=True):
            after[tuple(row[len(row) - length :])][label] += 1
        hits = [after[tuple(row[len(row) - length :])].most_common(1)[:1] for row in tested.tolist()]
        return np.mean([bool(hit) and hit[0][0] == y for hit, y in zip(hits, data.test_labels, strict=True)])

    found = [accuracy(length) for length in (0, 1, 2, 3)]
    assert found[0] < 0.2 and found[3] > 0.5 and found == sorted(found)


def test_a_client_may_hold_what_its_speakers_say():
    spec = {"kind": "images", "network": "lstm-small", "partition": "owners", "clients": 4}
    problem = problem_from_spec({**spec, "dataset": SMALL})
    np.testing.assert_array_equal(problem.partition.assignment, np.arange(60) % 6 % 4)
    with pytest.raises(
        FedboundsError, match=r"clients = 7 must be an integer in \[1, 6\]: each has an owner's samples"
    ):
        problem_from_spec({**spec, "dataset": SMALL, "clients": 7})
    with pytest.raises(FedboundsError, match=r"partition 'owners': this data set does not say whose its samples are"):
        problem_from_spec({**spec, "dataset": "digits"})


@pytest.mark.parametrize(("wrong", "message"), [
    ({"train": 5}, r"train = 5 must be an integer >= 6: at least one sample of each speaker"),
    ({"steps": 0}, r"steps = 0 must be an integer >= 1"),
    ({"speakers": 0}, r"speakers = 0 must be an integer >= 1"),
    ({"train": 10**12}, "GiB of memory"),
    ({"sede": 1}, "unknown key of data set 'characters': 'sede'; did you mean seed"),
])  # fmt: skip
def test_what_cannot_be_made_is_one_line(wrong, message):
    with pytest.raises(FedboundsError, match=message):
        load_dataset(SMALL | wrong)
