# SPDX-License-Identifier: GPL-3.0-or-later
"""Models from made-up data: learning.py lightgbm|xgboost|boosting|kmeans ROWS ITERATIONS"""

import sys

import numpy as np


def lightgbm(x, y, iterations):
    import lightgbm as lgb
    parameters = {"objective": "regression", "verbose": -1, "deterministic": True,
                  "force_row_wise": True}
    return lgb.train(parameters, lgb.Dataset(x, y), iterations).predict(x[:1000])


def xgboost(x, y, iterations):
    import xgboost as xgb
    model = xgb.train({"tree_method": "hist", "max_depth": 6}, xgb.DMatrix(x, y), iterations)
    return model.predict(xgb.DMatrix(x[:1000]))


def boosting(x, y, iterations):
    from sklearn.ensemble import HistGradientBoostingRegressor
    model = HistGradientBoostingRegressor(max_iter=iterations, early_stopping=False)
    return model.fit(x, y).predict(x[:1000])


def kmeans(x, _y, iterations):
    from sklearn.cluster import KMeans
    return KMeans(20, n_init=1, max_iter=iterations, random_state=1, tol=0).fit(x).inertia_


def main() -> None:
    kind, rows, iterations = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    random = np.random.default_rng(1)
    x = random.random((rows, 30))
    y = x[:, 0] + x[:, 1] * x[:, 2] + 0.1 * random.random(rows)
    models = {"lightgbm": lightgbm, "xgboost": xgboost, "boosting": boosting, "kmeans": kmeans}
    print(f"checksum {np.sum(models[kind](x, y, iterations)):.5g}")


main()
