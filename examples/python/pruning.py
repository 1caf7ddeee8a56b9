#!/usr/bin/python3
"""Trials that report as they go end early where others were better by then (python3-sklearn).

    PYTHONPATH=python examples/python/pruning.py"""

import berth
from sklearn.datasets import load_iris
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

X, TEST_X, Y, TEST_Y = train_test_split(*load_iris(return_X_y=True), random_state=0)


def objective(trial):
    model = SGDClassifier(alpha=trial.params.alpha, random_state=0)
    for step in range(100):
        model.partial_fit(X, Y, classes=range(3))
        trial.report(1 - model.score(TEST_X, TEST_Y), step)
        if trial.should_prune():
            raise berth.Pruned
    return 1 - model.score(TEST_X, TEST_Y)


if __name__ == "__main__":
    study = berth.Study({"alpha": {"min": 1e-5, "max": 1e-1, "scale": "log"}}, name="pruning", goal="error",
                        direction="min", early_stop={"policy": "median"})
    study.optimize(objective, n_trials=20)
    early = sum(trial.record["cause"] == "stopped early" for trial in study.trials())
    print(f"{study.best_trial.id}: error {study.best_value:.3f}; {early} of 20 ended early")
