"""What a learner sees: predictions, charts, progress. It draws records and measures nothing."""

from traceonce.show.charts import Chart as Chart
from traceonce.show.charts import chart as chart
from traceonce.show.charts import child_chart as child_chart
from traceonce.show.layouts import Layout as Layout
from traceonce.show.layouts import layout as layout
from traceonce.show.prediction import Prediction as Prediction
from traceonce.show.prediction import predict as predict
from traceonce.show.records import Arm as Arm
from traceonce.show.records import Bars as Bars
from traceonce.show.records import Limit as Limit
from traceonce.show.records import Line as Line
from traceonce.show.records import Timeline as Timeline
from traceonce.show.summary import Progress as Progress
from traceonce.show.summary import progress as progress
from traceonce.show.survey import Survey as Survey
from traceonce.show.survey import inventory as inventory

__all__ = [
    "Arm",
    "Bars",
    "Chart",
    "Layout",
    "Limit",
    "Line",
    "Prediction",
    "Progress",
    "Survey",
    "Timeline",
    "chart",
    "child_chart",
    "inventory",
    "layout",
    "predict",
    "progress",
]
