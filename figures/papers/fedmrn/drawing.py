"""The figures and tables of the paper, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from fedbounds.empirical.algorithms import algorithm_from_spec
from fedbounds.empirical.problems import problem_from_spec
from fedbounds.empirical.simulation.trace import Trace
from fedbounds.figures.charts.claims import level, movement_caption
from fedbounds.figures.charts.curves import panels, seed_curve
from fedbounds.figures.charts.paper_gallery import PaperGallery, dot_chart, final_accuracy, series
from fedbounds.figures.charts.picture import Curve, Picture
from fedbounds.figures.charts.tightness import module_tightness
from fedbounds.figures.charts.tuning import Tuned, TunedSetting, search
from fedbounds.figures.papers.fedmrn import bounds as theorems
from fedbounds.figures.papers.fedmrn import experiments as ex
from fedbounds.figures.papers.fedmrn import simulated, tightness, timing

RATIO = 10**0.5  # of the paper's learning rates
CHANCE = "A run that diverged counts as chance from there on."
COMPARED = {
    "one bit": (ex.FEDAVG, ex.MRN, ex.MRNS, ex.EDEN, ex.DRIVE, ex.SIGN, ex.FIXED_SIGN, ex.FEDPM),
    "other encodings": (ex.FEDAVG, ex.MRN, ex.TERNGRAD, ex.TOP_K, ex.FEDSPARSIFY),
}


class Gallery(PaperGallery[ex.Scale]):
    """The figures and tables of this paper.

    Data sets: glyphs (default), digits; from local files fashion-mnist, svhn, cifar-10, cifar-100. Networks: mlp
    (default on glyphs and digits), a CNN on the others, or another.
    """

    scale_of = staticmethod(ex.scale_of)
    usual = "glyphs"

    def tune(self, labels: Sequence[str], split: str) -> dict[str, Tuned]:
        """The tuning of methods on a partition by training accuracy: the same search for all, separate seeds."""

        def scores(settings: Mapping[str, TunedSetting]) -> dict[str, float]:
            methods = {label: ex.method(self.scale, label, one) for label, one in settings.items()}
            runs = self.run(ex.training_sweep(self.scale, methods, split, self.data, tuning=True))
            return {label: level(runs[label], self.scale.last, "train_accuracy").mean for label in settings}

        found: dict[str, Tuned] = self.keep(("tuned", split), dict)
        starts = {label: ex.start(label, split) for label in labels if label not in found}
        found |= search(starts, scores, self.scale.budget, RATIO, extensions=self.scale.extensions)
        return {label: found[label] for label in labels}

    def runs_of(self, labels: Sequence[str], split: str) -> dict[str, list[Trace]]:
        """Methods on a partition, each with its tuned settings."""
        methods = {label: ex.method(self.scale, label, one.winner) for label, one in self.tune(labels, split).items()}
        return self.run(ex.training_sweep(self.scale, methods, split, self.data))

    @cached_property
    def by_partition(self) -> dict[str, dict[str, list[Trace]]]:
        """Table 1's runs."""
        return {split: self.runs_of(self.scale.labels, split) for split in ex.PARTITIONS}

    @cached_property
    def convolutional(self) -> Gallery:
        """The same with convolutions."""
        return self.at(ex.convolutional(self.scale), self.data)

    @cached_property
    def on_digits(self) -> Gallery:
        """The same on digits."""
        return self.at(ex.on_digits(self.scale))

    @cached_property
    def sequential(self) -> Gallery:
        """The same on text."""
        return self.at(ex.sequential(self.scale))

    @cached_property
    def ablation(self) -> dict[str, list[Trace]]:
        """Figure 4's runs."""
        return self.runs_of(ex.ABLATION, ex.LABELS)

    def accuracy(self, traces: Sequence[Trace]) -> np.ndarray:
        """The test accuracy over the last rounds in per cent, (seeds,); a run that diverged counts as chance."""
        chance = {"cifar-100": 0.01, "characters": 1 / 27}.get(self.scale.dataset, 0.1)
        return final_accuracy(traces, "test_accuracy", self.scale.last, chance)

    @cached_property
    def by_amplitude(self) -> dict[str, dict[str, dict[float, list[Trace]]]]:
        """Figure 5's runs: masks to law to amplitude, at the learning rates of Non-IID-2."""
        found: dict[str, dict[str, dict[float, list[Trace]]]] = {}
        tuned = self.tune((ex.MRN, ex.MRNS), ex.LABELS)
        largest = tuned[ex.MRN].winner["amplitude"]
        for label, one in tuned.items():
            step = one.winner["local_step_size"]
            for law in ex.LAWS:
                methods = {
                    f"{alpha:.6g}": ex.method(self.scale, label, {"local_step_size": step, "amplitude": alpha})
                    | {"law": law}
                    for alpha in (float(f"{share * largest:.6g}") for share in ex.SHARES)
                }
                sweep = ex.training_sweep(self.scale, methods, ex.LABELS, self.data)
                found.setdefault(label, {})[law] = {float(k): runs for k, runs in self.run(sweep).items()}
        return found

    def megabytes(self, label: str, round_: np.ndarray) -> np.ndarray:
        """The traffic of all clients up to each round in 10^6 bytes."""
        methods = {label: ex.method(self.scale, label, ex.start(label))}
        (task,) = ex.training_sweep(self.scale, methods, ex.LABELS, self.data, seeds=1).tasks
        each = algorithm_from_spec(task["algorithm"]).message_bytes(problem_from_spec(task["problem"]))
        assert each is not None  # all these messages have one length
        return each * self.scale.participants * np.asarray(round_) / 1e6

    def table_1(self, how: str = "") -> Picture:
        """Accuracies on three partitions; `how` ends the title."""
        values = {
            split: {label: {"": self.accuracy(traces)} for label, traces in runs.items()}
            for split, runs in self.by_partition.items()
        }
        title = f"Table 1: test accuracy on three partitions{how}"
        note = "Bars are a standard deviation over seeds; a seed's split is the same for all methods."
        caption = f"{title}. {note} {self._note()}{self._movement(self._in_partitions)}"
        return dot_chart(title, values, "test accuracy in %", caption, self._provenance(ex.PARTITIONS))

    @property
    def _in_partitions(self) -> dict[str, list[Trace]]:
        return {f"{label} ({split})": v for split, runs in self.by_partition.items() for label, v in runs.items()}

    def _movement(self, runs: Mapping[str, Sequence[Trace]]) -> str:
        return movement_caption(runs, self.scale.last, ["test_accuracy"])

    def table_2(self) -> Picture:
        """Accuracy minus that of FedAvg."""
        found = {label: {"": lack} for label, lack in self.lacks().items()}
        title = "Table 2: accuracy minus that of FedAvg, summed over the partitions"
        caption = f"{title}. {self._note()}{self._movement(self._in_partitions)}"
        return dot_chart(title, {"": found}, "points", caption, self._provenance(ex.PARTITIONS))

    @cached_property
    def on_text(self) -> dict[str, np.ndarray]:
        """Accuracies of Table 3's sequence task, (seeds,), by method."""
        here = self.sequential
        return {label: here.accuracy(runs) for label, runs in here.runs_of(ex.ON_TEXT, ex.SPEAKERS).items()}

    def table_3(self) -> Picture:
        """The sequence task on generated text."""
        found, here = {label: {"": values} for label, values in self.on_text.items()}, self.sequential
        title = "Table 3's sequence task: which character comes next, on text made here"
        note = (
            f"Of the last {ex.TEXT_STEPS} characters, held as an image; a client has what one speaker says, a seed its "
            "own language. Bars are a standard deviation over seeds. "
            f"The authors' code has {ex.NO_PM} here. Segmentation is not done."
        )
        return dot_chart(title, {"": found}, "test accuracy in %", f"{title}. {note} {here._note()}"
                         f"{here._movement(here.runs_of(ex.ON_TEXT, ex.SPEAKERS))}",
                         here._provenance([ex.SPEAKERS]))  # fmt: skip

    def lacks(self) -> dict[str, np.ndarray]:
        """Accuracy minus that of FedAvg, summed over the partitions, (seeds,), by method."""
        by_split = [{k: self.accuracy(v) for k, v in runs.items()} for runs in self.by_partition.values()]
        rest = [label for label in self.scale.labels if label != ex.FEDAVG]
        return {label: sum((one[label] - one[ex.FEDAVG] for one in by_split), np.zeros(1)) for label in rest}

    def figure_3(self) -> Picture:
        """Accuracy against rounds."""
        return self._courses("Figure 3: test accuracy on Non-IID-2", "round", bits=False)

    def bits(self) -> Picture:
        """Accuracy against traffic."""
        title = "Test accuracy on Non-IID-2 against what clients have sent"
        return self._courses(title, "megabytes sent by all clients", bits=True)

    def _courses(self, title: str, x_label: str, bits: bool) -> Picture:
        groups: dict[str, list[Curve]] = {}
        runs = self.by_partition[ex.LABELS]
        for name, labels in COMPARED.items():
            groups[name] = []
            for label in (one for one in labels if one in runs):
                rounds, values = series(runs[label], "test_accuracy")
                x = self.megabytes(label, rounds) if bits else rounds
                groups[name].append(seed_curve(label, x[1:], 100 * values[:, 1:]))
        lengths = "Megabytes are lengths of real messages: envelopes, seeds and scales included." if bits else ""
        return panels(
            groups,
            x_label=x_label,
            y_labels=["test accuracy in %"] * len(groups),
            title=title,
            caption=f"{title}. {lengths} {self._note()} Bands are a standard deviation over seeds; a run that diverged "
            f"is not drawn from there on.{self._movement(runs)}",
            alternative=f"Test accuracy of {len(runs)} methods against {x_label}.",
            provenance=self._provenance([ex.LABELS]),
            x_scale="log" if bits else "linear",
            legends=True,
        )

    def figure_4(self) -> Picture:
        """The ablation."""
        found = {label: {"": self.accuracy(traces)} for label, traces in self.ablation.items()}
        title = "Figure 4: FedMRN and what is left without its parts, on Non-IID-2"
        note = (
            "SM: random masks, else those of the signs; PM: masks come in step by step, else at once; FedAvg w. SM: "
            "masks after the training."
        )
        return dot_chart(title, {"": found}, "test accuracy in %", f"{title}. {note} {self._note()}"
                         f"{self._movement(self.ablation)}",
                         self._provenance([ex.LABELS], ex.ABLATION))  # fmt: skip

    def figure_5(self) -> Picture:
        """Accuracy against the amplitude of the noise, on digits."""
        here = self.on_digits
        groups: dict[str, list[Curve]] = {}
        for label, laws in here.by_amplitude.items():
            for law, runs in laws.items():
                values = np.stack([here.accuracy(traces) for traces in runs.values()], axis=1)
                groups.setdefault(label, []).append(seed_curve(law, np.array(list(runs)), values))
            level_ = here.accuracy(here.runs_of([ex.FEDAVG], ex.LABELS)[ex.FEDAVG])
            groups[label].append(seed_curve("FedAvg", np.array(list(runs)), np.tile(level_[:, None], len(runs))))
        moving = {
            f"{label} ({law} {alpha:.2g})": runs
            for label, laws in here.by_amplitude.items() for law, of in laws.items() for alpha, runs in of.items()
        }  # fmt: skip
        title = "Figure 5: the amplitude of the noise, on digits, Non-IID-2"
        tuned = here.tune([*groups], ex.LABELS)
        steps = ", ".join(f"{one.winner['local_step_size']:.3g} for {label}" for label, one in tuned.items())
        picture = panels(
            groups,
            x_label="amplitude $\\alpha$",
            y_labels=["test accuracy in %"] * 2,
            title=title,
            caption=f"{title}: uniform on [-alpha, alpha], Gaussian of standard deviation alpha, Bernoulli +-alpha. "
            f"The paper's amplitudes are {', '.join(f'{share:g}' for share in ex.PAPER_SHARES)} times 0.01; here "
            f"{ex.SHARES[0]:g} to {ex.SHARES[-1]:g} times FedMRN's, tuned with uniform noise. Learning rates are "
            f"those tuned for uniform noise on Non-IID-2: {steps}. {here._note()}"
            f"{here._movement(moving)}",
            alternative="Test accuracy against the amplitude of the noise for three laws and both masks.",
            provenance=here._provenance([ex.LABELS], (ex.MRN, ex.MRNS)),
            x_scale="log",
        )
        for axes in picture.figure.axes:
            axes.set_xticks(picture.curves[0].x, [f"{alpha:.2g}" for alpha in picture.curves[0].x], rotation=45)
            axes.minorticks_off()
        return picture

    def figure_6(self) -> Picture:
        """Times of one client's round."""
        title = "Figure 6: time of one client's round over that of FedAvg's local training"
        caption = (
            f"{title}: {timing.STEPS} local steps on batches of {timing.BATCH}, as in the paper on FMNIST "
            f"({timing.MEASURED[1]} are measured), and the making of one message; processor time, one thread, median "
            f"and quartiles of {self.scale.repeats} measurements. FedMRN's masks are part of its local training, which "
            "for methods that compress afterwards is FedAvg's. Measured where this was drawn; "
            f"{self.scale.dataset}."
        )
        return dot_chart(title, self.times, "share of FedAvg's local training", caption, {"scale": self.scale.words},
                         share=False, quartiles=True)  # fmt: skip

    @cached_property
    def times(self) -> dict[str, dict[str, dict[str, np.ndarray]]]:
        """Figure 6's measurements over the median of FedAvg's training, (repeats,), by network, method and kind."""
        shares = {}
        for network in self.scale.timed:
            found = timing.times(self.scale, network, self.data)
            unit = float(np.median(found[ex.FEDAVG][timing.TRAINING]))
            shares[network] = {label: {kind: v / unit for kind, v in of.items()} for label, of in found.items()}
        return shares

    def _note(self) -> str:
        rounds = f" in {self.scale.tuning_rounds} rounds" if self.scale.tuning_rounds else ""
        seeds = "one other seed" if self.scale.tuning_seeds == 1 else f"{self.scale.tuning_seeds} other seeds"
        return (
            f"Each method has the best settings of one search on {seeds}"
            f"{rounds}, by training accuracy: {self.scale.budget} settings ({self.scale.extensions} more where the "
            "best stays at an edge) "
            f"from {self.scale.start} on, by the ratio of the paper's and finer ones; of masked noise and of "
            f"SignSGD's tuned scale the amplitude in the same number of settings. Test accuracy over the last "
            f"{self.scale.last} rounds. {CHANCE} {self.scale.words}."
        )

    def _provenance(self, splits: Sequence[str], labels: Sequence[str] = ()) -> dict[str, object]:
        found = {
            split: {label: one.summary() for label, one in self.tune(labels or self.scale.labels, split).items()}
            for split in splits
        }
        return {"scale": self.scale.words, "tuned": found}


FIGURES: Mapping[str, Callable[[Gallery], Picture]] = {
    "table-1": Gallery.table_1,
    "table-2": Gallery.table_2,
    "table-3": Gallery.table_3,
    "table-1-cnn": lambda gallery: gallery.convolutional.table_1(" with convolutions"),
    "figure-3": Gallery.figure_3,
    "bits": Gallery.bits,
    "figure-4": Gallery.figure_4,
    "figure-5": Gallery.figure_5,
    "figure-6": Gallery.figure_6,
    "theorem-1": lambda gallery: theorems.theorem_1(gallery.scale.iterations),
    "theorem-2": lambda gallery: theorems.theorem_2(gallery.scale.horizons),
    "tightness": lambda gallery: module_tightness(tightness, gallery.progress),
    "operators": lambda gallery: theorems.operators(gallery.scale.points),
    "bounded-clients": lambda gallery: simulated.bounded_clients(gallery.scale.horizons, seeds=8),
    "network": lambda gallery: simulated.network(gallery.scale.iterations // 2),
    "masking-error": lambda gallery: simulated.masking_error(gallery.scale.iterations // 10),
}
