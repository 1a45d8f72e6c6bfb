"""What a learner sees: predictions, charts, progress. It draws records and measures nothing."""

from traceonce.show.prediction import Prediction as Prediction
from traceonce.show.prediction import predict as predict
from traceonce.show.summary import Progress as Progress
from traceonce.show.summary import progress as progress

__all__ = ["Prediction", "Progress", "predict", "progress"]
