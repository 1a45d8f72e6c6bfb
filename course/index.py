# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Trace Once
#
# For people who know PyTorch and want to write JAX that traces once, fits in memory and keeps the device busy. You learn it
# by watching: what was traced, what was compiled, what took the memory, in code that you run and change yourself.
#
# Start with [lesson 01](01_pure_functions/01_pure_functions.ipynb). The lessons build on each other.

# %% [markdown]
# ## The map
#
# Each lesson opens with a puzzle and answers it with cells that you run. The last two columns are minutes, for the lesson
# and for its lab; where there is no link yet, they are a plan.
#
# | lesson | the puzzle | minutes | lab |
# |---|---|---|---|
# | [01 One step is a state transition](01_pure_functions/01_pure_functions.ipynb) | `optimizer.step()` returns nothing. Where did the change go? | 50 | [30](../labs/lab01_pure_functions.ipynb) |
# | [02 Randomness is data with an owner](02_random_keys/02_random_keys.ipynb) | Dropout repeats its mask at every step. Whose fault is it? | 45 | [30](../labs/lab02_random_keys.ipynb) |
# | [03 Structured state](03_pytrees/03_pytrees.ipynb) | The leaf count matches and the loss is wrong. What was not compared? | 50 | [35](../labs/lab03_pytrees.ipynb) |
# | [04 Derive, do not rewrite](04_transformations/04_transformations.ipynb) | Two compositions average to the same numbers. Why pay for the dearer one? | 50 | [40](../labs/lab04_transformations.ipynb) |
# | [05 One contract, one compile](05_retracing/05_retracing.ipynb) | One step in fifty is as slow as the first. What changed? | 60 | [35](../labs/lab05_retracing.ipynb) |
# | [06 Shapes fixed, answers unchanged](06_padding_masks/06_padding_masks.ipynb) | The padded batch has a lower loss. Is that progress? | 60 | [40](../labs/lab06_padding_masks.ipynb) |
# | [07 Measure finished work](07_honest_timing/07_honest_timing.ipynb) | Two careful people differ by a factor of 100. What did each measure? | 60 | [35](../labs/lab07_honest_timing.ipynb) |
# | [08 Out of memory, on purpose](08_memory/08_memory.ipynb) | The log stops in mid-line, exit code 137. Which family is it? | 60 | |
# | [08b What a compiled program needs](08_memory/08b_device_memory.ipynb) | 32 variants fit, 2048 do not, and the result is two arrays. Where did the gigabytes go? | 60 | [40](../labs/lab08_memory.ipynb) |
# | [09 Give the compiler the whole block](09_fusion/09_fusion.ipynb) | The code is right and the device idles. What did the compiler never see? | 55 | [40](../labs/lab09_fusion.ipynb) |
# | [10 Keep the device busy](10_feeding_the_device/10_feeding_the_device.ipynb) | Utilisation is low and spiky. Who is waiting for whom? | 55 | [40](../labs/lab10_feeding_the_device.ipynb) |
# | [11 Placement is state too](11_devices/11_devices.ipynb) | Slower on eight devices than on one. Where do the bytes live? | 55 | [35](../labs/lab11_devices.ipynb) |
# | [12 Change one thing, keep the evidence](12_research_repo/12_research_repo.ipynb) | You get a paper's code and a new loss term. What do you run first? | 45 | [60](../labs/lab12_research_repo.ipynb) |
#
# Lessons without a link are not written yet.

# %% [markdown]
# ## How a lesson works
#
# - Run the cells from the top with Shift+Enter. Change one and run it again; it is your copy.
# - A question with buttons asks what you expect **before** the cell that measures it. Answer first; a wrong guess costs
#   nothing.
# - A chart counts calls, traces and compiles while its cell runs.
# - Each lesson breaks something on purpose and repairs it.

# %% [markdown]
# ## How a lab works
#
# You write into the cells that say `YOUR CODE HERE`. The cell below each task holds visible asserts, which answer at once:
# what was expected, what came, what to look at. They are not all. `traceonce grade` runs hidden asserts on random data and
# shows a hint for each that fails.

# %% [markdown]
# ## Your copies
#
# These notebooks are yours; an upgrade never overwrites what you changed. If a newer version of a notebook comes, it is
# laid beside yours as `NAME.new.ipynb`. To start one over, delete it and run `make learn` again.

# %% [markdown]
# ## Your progress
#
# Run this cell to see what you predicted and what was measured. It is kept on this machine alone.

# %%
from traceonce.show import progress

progress()
