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
# # What do you know already?
#
# Twenty-four questions, two about each lesson, in about 20 minutes. Take them **before** lesson 01 and **again after** the last lesson.
# Each shows a few lines and asks what they give. Read, do not run: a guess that a machine made says nothing about you.
#
# You are not graded. Nobody sees your answers unless you [hand them on](#What-a-teacher-gets).

# %% [markdown]
# Run the cells from the top with Shift+Enter and choose. *I do not know* is a good answer where you would be guessing. An answer can be
# changed until the pass is handed in. Which answers are right is shown after the second pass.
#
# Before each piece of code stand `import jax`, `import jax.numpy as jnp` and `import numpy as np`.

# %%
from traceonce.show import inventory

survey = inventory("before")  # after the last lesson: "after"

# %% [markdown]
# ## 01 · One step is a state transition

# %%
survey.ask("01")

# %% [markdown]
# ## 02 · Randomness is data with an owner

# %%
survey.ask("02")

# %% [markdown]
# ## 03 · Structured state

# %%
survey.ask("03")

# %% [markdown]
# ## 04 · Derive, do not rewrite

# %%
survey.ask("04")

# %% [markdown]
# ## 05 · One contract, one compile

# %%
survey.ask("05")

# %% [markdown]
# ## 06 · Shapes fixed, answers unchanged

# %%
survey.ask("06")

# %% [markdown]
# ## 07 · Measure finished work

# %%
survey.ask("07")

# %% [markdown]
# ## 08 · Out of memory, on purpose

# %%
survey.ask("08")

# %% [markdown]
# ## 09 · Give the compiler the whole block

# %%
survey.ask("09")

# %% [markdown]
# ## 10 · Keep the device busy

# %%
survey.ask("10")

# %% [markdown]
# ## 11 · Placement is state too

# %%
survey.ask("11")

# %% [markdown]
# ## 12 · Change one thing, keep the evidence

# %%
survey.ask("12")

# %% [markdown]
# ## Hand in
#
# Run this cell when you have answered. It says which questions are still open; when there are none, it closes the pass. After the
# second pass it shows what is right, what you would have to believe for your wrong answers, and your gain for each lesson: of what
# there was to learn, the share that you learned.

# %%
survey.hand_in()

# %% [markdown]
# ## What a teacher gets
#
# Nothing, unless you give it. `traceonce progress --export answers.json` writes a file with your choices, before and after, and a random
# number that says which two files are of one person. It holds no name, no time and nothing of your machine; open it and look.
#
# A teacher puts such files into a folder. `traceonce progress --class FOLDER` shows the gain for each lesson and how many hold which
# misconception.
