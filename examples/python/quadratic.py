#!/usr/bin/python3
"""The least value of a function of two variables; its space becomes known as trials ask for it.

    PYTHONPATH=python examples/python/quadratic.py"""

import berth


def objective(trial):
    x = trial.suggest_float("x", -100, 100)
    y = trial.suggest_categorical("y", [-1, 0, 1])
    return x**2 + y


if __name__ == "__main__":
    study = berth.Study(name="quadratic", goal="value", direction="min")
    study.optimize(objective, n_trials=100, timeout=600)
    print(f"{study.best_trial.id}: {study.best_value:.4f} with {dict(study.best_params)}")
