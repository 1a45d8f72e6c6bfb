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
# Start with [lesson 01](01_pure_functions/01_pure_functions.ipynb), or go on where [your progress](#Your-progress) says. Something is
# broken right now? Look it up [by what you see](#What-went-wrong-in-your-code?).

# %% [markdown]
# ## The map
#
# Each lesson opens with a puzzle and answers it with cells that you run. *Needs* names the lessons that it builds on; the last
# two columns are minutes, for the lesson and for its lab.
#
# | lesson | the puzzle | needs | minutes | lab |
# |---|---|---|---|---|
# | [01 One step is a state transition](01_pure_functions/01_pure_functions.ipynb) | `optimizer.step()` returns nothing. Where did the change go? | PyTorch, NumPy | 50 | [30](../labs/lab01_pure_functions.ipynb) |
# | [02 Randomness is data with an owner](02_random_keys/02_random_keys.ipynb) | Dropout repeats its mask at every step. Whose fault is it? | 01 | 45 | [30](../labs/lab02_random_keys.ipynb) |
# | [03 Structured state](03_pytrees/03_pytrees.ipynb) | The leaf count matches and the loss is wrong. What was not compared? | 01 | 50 | [35](../labs/lab03_pytrees.ipynb) |
# | [04 Derive, do not rewrite](04_transformations/04_transformations.ipynb) | Two compositions average to the same numbers. Why pay for the dearer one? | 01–03 | 50 | [40](../labs/lab04_transformations.ipynb) |
# | [05 One contract, one compile](05_retracing/05_retracing.ipynb) | One step in fifty is as slow as the first. What changed? | 01, 03 | 60 | [35](../labs/lab05_retracing.ipynb) |
# | [06 Shapes fixed, answers unchanged](06_padding_masks/06_padding_masks.ipynb) | The padded batch has a lower loss. Is that progress? | 04, 05 | 60 | [40](../labs/lab06_padding_masks.ipynb) |
# | [07 Measure finished work](07_honest_timing/07_honest_timing.ipynb) | Two careful people differ by a factor of 100. What did each measure? | 05 | 60 | [35](../labs/lab07_honest_timing.ipynb) |
# | [08 Out of memory, on purpose](08_memory/08_memory.ipynb) | The log stops in mid-line, exit code 137. Which family is it? | 05 | 60 |  |
# | [08b What a compiled program needs](08_memory/08b_device_memory.ipynb) | 32 variants fit, 2048 do not, and the result is two arrays. Where did the gigabytes go? | 04, 07, 08 | 60 | [40](../labs/lab08_memory.ipynb) |
# | [09 Give the compiler the whole block](09_fusion/09_fusion.ipynb) | The code is right and the device idles. What did the compiler never see? | 05, 07, 08b | 55 | [40](../labs/lab09_fusion.ipynb) |
# | [10 Keep the device busy](10_feeding_the_device/10_feeding_the_device.ipynb) | Utilisation is low and spiky. Who is waiting for whom? | 02, 07 | 55 | [40](../labs/lab10_feeding_the_device.ipynb) |
# | [11 Placement is state too](11_devices/11_devices.ipynb) | Slower on eight devices than on one. Where do the bytes live? | 02, 05, 06 | 55 | [35](../labs/lab11_devices.ipynb) |
# | [12 Change one thing, keep the evidence](12_research_repo/12_research_repo.ipynb) | You get a paper's code and a new loss term. What do you run first? | 01–10 | 45 | [60](../labs/lab12_research_repo.ipynb) |
#
# Together 11 hours and 45 minutes, and 7 hours and 40 minutes of labs.

# %% [markdown]
# ## Your progress
#
# Run this cell to see the next step, what you predicted, what was measured, and what was graded. It is kept on this machine alone.

# %%
from traceonce.show import progress

progress()

# %% [markdown]
# ## What went wrong in your code?
#
# Look for what you see, in your words or the machine's (Ctrl+F). Each line leads to the section of a lesson that shows it in a few
# lines of code: find out there whether yours is the same.

# %% [markdown]
# ### Numbers that are wrong, and nothing is raised
#
# | what you see | often because | read |
# |---|---|---|
# | the loss falls after padding was added | zeros are counted as rows | 06 [The denominator is the valid count](06_padding_masks/06_padding_masks.ipynb#The-denominator-is-the-valid-count) |
# | the mean over all batches is not the mean over all rows | the last batch is shorter and weighs as much | 06 [Evaluation: sums and counts](06_padding_masks/06_padding_masks.ipynb#Evaluation:-sums-and-counts) |
# | dropout repeats its mask at every step | one key, used again | 02 [A key is a value](02_random_keys/02_random_keys.ipynb#A-key-is-a-value) |
# | two kinds of noise move together | two helpers split the same parent | 02 [One parent, one owner](02_random_keys/02_random_keys.ipynb#One-parent,-one-owner) |
# | other noise when the batch size or the order changes | the key follows a position | 02 [An identity, not a position](02_random_keys/02_random_keys.ipynb#An-identity,-not-a-position) |
# | a resumed run draws other noise | the key was not saved, or not its implementation | 02 [The stream goes on](02_random_keys/02_random_keys.ipynb#The-stream-goes-on) |
# | a value that you changed has no effect | a compiled function keeps what it read when it was traced | 01 [A compiled step remembers what it read](01_pure_functions/01_pure_functions.ipynb#A-compiled-step-remembers-what-it-read) |
# | fewer traces after a change, and an old number | what is not in the key is as old as the trace | 05 [What the key does not hold](05_retracing/05_retracing.ipynb#What-the-key-does-not-hold) |
# | an update disappears | `.at[...]` returned it and nobody kept it | 01 [A result that nobody keeps](01_pure_functions/01_pure_functions.ipynb#A-result-that-nobody-keeps) |
# | a write or a read past the end says nothing | out of bounds is dropped or clipped | 01 [Out of bounds is not an error](01_pure_functions/01_pure_functions.ipynb#Out-of-bounds-is-not-an-error) |
# | the structures agree and training goes wrong | a leaf has another shape and broadcasts | 03 [The same name, another shape](03_pytrees/03_pytrees.ipynb#The-same-name,-another-shape) |
# | PyTorch weights load and the answers are wrong | a square weight is not transposed | 03 [Weights from PyTorch](03_pytrees/03_pytrees.ipynb#Weights-from-PyTorch) |
# | `vmap` runs and reads columns for rows | as many rows as features | 04 [What a wrong axis says](04_transformations/04_transformations.ipynb#What-a-wrong-axis-says) |
# | the loss does not fall, its value is odd | `(n, 1)` minus `(n,)` is `(n, n)` | 12 [Eleven symptoms](12_research_repo/12_research_repo.ipynb#Eleven-symptoms) |
# | a clipped or private gradient is wrong | clipping came after the average | 04 [The order decides what exists](04_transformations/04_transformations.ipynb#The-order-decides-what-exists) |
# | the last digits differ between compiled and eager | fusion rounds otherwise | 09 [The last digits](09_fusion/09_fusion.ipynb#The-last-digits) |
# | the same fit fails in float32 | an ill-conditioned problem | 08b [Precision tiers](08_memory/08b_device_memory.ipynb#Precision-tiers) |

# %% [markdown]
# ### NaN
#
# | what you see | often because | read |
# |---|---|---|
# | NaN in the gradient, and the loss is finite | the mask stands behind the operation | 06 [A mask belongs in front](06_padding_masks/06_padding_masks.ipynb#A-mask-belongs-in-front) |
# | NaN from a row of padding in a softmax | attention with nothing to attend to | 06 [Attention with nothing to attend to](06_padding_masks/06_padding_masks.ipynb#Attention-with-nothing-to-attend-to) |
# | NaN or a moving parameter on an empty batch | nothing to divide by; momentum goes on | 06 [Nothing to divide by](06_padding_masks/06_padding_masks.ipynb#Nothing-to-divide-by) |
# | NaN in the norm of a gradient that is zero | a root at zero | 04 [The row that pulls nothing](04_transformations/04_transformations.ipynb#The-row-that-pulls-nothing) |

# %% [markdown]
# ### Slow steps and compiles
#
# | what you see | often because | read |
# |---|---|---|
# | one step in fifty is as slow as the first | something in the call's key changed | 05 [The key, part by part](05_retracing/05_retracing.ipynb#The-key,-part-by-part) |
# | the last step of each epoch is slow | the short batch is a shape of its own | 06 [Few shapes for many lengths](06_padding_masks/06_padding_masks.ipynb#Few-shapes-for-many-lengths) |
# | the first step after loading a checkpoint compiles again | loaded arrays are committed | 05 [A compile with no trace](05_retracing/05_retracing.ipynb#A-compile-with-no-trace) |
# | the second step compiles as well | a weak type became a strong one | 05 [Weak types](05_retracing/05_retracing.ipynb#Weak-types) |
# | every value of an argument compiles | the argument is static | 05 [Static or traced](05_retracing/05_retracing.ipynb#Static-or-traced) |
# | every turn of a loop compiles | the function is made anew | 05 [Made anew in a loop](05_retracing/05_retracing.ipynb#Made-anew-in-a-loop) |
# | every new optimizer compiles | an optimizer is made of functions | 05 [An optimizer is made of functions](05_retracing/05_retracing.ipynb#An-optimizer-is-made-of-functions) |
# | more compiles than buckets | the other axis varies too | 06 [More compiles than buckets](06_padding_masks/06_padding_masks.ipynb#More-compiles-than-buckets) |
# | the first start takes minutes, on every machine | no cache on disk, or one that is not found | 05 [A cache on disk](05_retracing/05_retracing.ipynb#A-cache-on-disk) |
# | compiling takes longer with each layer or step | a Python loop makes the program long | 09 [Unrolled or scanned](09_fusion/09_fusion.ipynb#Unrolled-or-scanned) |

# %% [markdown]
# ### Errors that JAX raises
#
# | what you see | often because | read |
# |---|---|---|
# | `UnexpectedTracerError`, two cells later | a tracer was kept in a list or a global | 01 [A list remembers traces, not runs](01_pure_functions/01_pure_functions.ipynb#A-list-remembers-traces,-not-runs) |
# | `TracerBoolConversionError` | `if` or `while` on a traced value | 06 [Branches and loops](06_padding_masks/06_padding_masks.ipynb#Branches-and-loops) |
# | `ConcretizationTypeError` | `float` or `int` of a traced value | 01 [Python runs while tracing, and then no more](01_pure_functions/01_pure_functions.ipynb#Python-runs-while-tracing,-and-then-no-more) |
# | `NonConcreteBooleanIndexError` | the data choose a shape | 05 [Shapes made by data](05_retracing/05_retracing.ipynb#Shapes-made-by-data) |
# | `Shapes must be 1D sequences of concrete values` | a traced number as a length | 05 [Static or traced](05_retracing/05_retracing.ipynb#Static-or-traced) |
# | `Non-hashable static arguments are not supported` | an array was marked static | 05 [Static or traced](05_retracing/05_retracing.ipynb#Static-or-traced) |
# | `JAX arrays are immutable` | an assignment to an element | 01 [Arrays refuse to be changed](01_pure_functions/01_pure_functions.ipynb#Arrays-refuse-to-be-changed) |
# | `Array has been deleted` | it was donated | 01 [Immutable is not copied](01_pure_functions/01_pure_functions.ipynb#Immutable-is-not-copied) |
# | `Gradient only defined for scalar-output functions` | the loss has a shape, be it `(1,)` | 04 [One scalar at a time](04_transformations/04_transformations.ipynb#One-scalar-at-a-time) |
# | `vmap got inconsistent sizes` | `in_axes` | 04 [What a wrong axis says](04_transformations/04_transformations.ipynb#What-a-wrong-axis-says) |
# | `pytree structure error` | an entry was renamed, or is `None` | 03 [One name changed](03_pytrees/03_pytrees.ipynb#One-name-changed) |
# | `as an abstract array`, and a class of yours | it is not registered | 03 [Your own classes](03_pytrees/03_pytrees.ipynb#Your-own-classes) |
# | `Reverse-mode differentiation does not work for lax.while_loop` | an unknown number of turns has no tape | 06 [Loops](06_padding_masks/06_padding_masks.ipynb#Loops) |
# | `carry input and carry output must have equal types` | a shape or a dtype that changes in a loop | 06 [Loops](06_padding_masks/06_padding_masks.ipynb#Loops) |
# | `KeyReuseError` | a key was consumed twice | 02 [What a checker sees](02_random_keys/02_random_keys.ipynb#What-a-checker-sees) |

# %% [markdown]
# ### Memory
#
# | what you see | often because | read |
# |---|---|---|
# | exit code 137, the log stops in mid-line | SIGKILL: the machine or its cgroup was full | 08 [Five ways to die](08_memory/08_memory.ipynb#Five-ways-to-die) |
# | exit code 137, and you want to know who did it | three killers, three traces | 08 [Reading the body](08_memory/08_memory.ipynb#Reading-the-body) |
# | exit code 134, a line about threads or `bad_alloc` | a limit on addresses | 08 [Refused instead of killed](08_memory/08_memory.ipynb#Refused-instead-of-killed) |
# | `RESOURCE_EXHAUSTED`, perhaps behind a wrapper | the device's allocator | 08 [XLA's own word](08_memory/08_memory.ipynb#XLA's-own-word) |
# | it fits with 32 and not with 2048 | a wide `vmap`: all at once | 08b [Fan out, then reduce](08_memory/08b_device_memory.ipynb#Fan-out,-then-reduce) |
# | memory grows with the length of a `scan` | its tape | 08b [The tape of a scan](08_memory/08b_device_memory.ipynb#The-tape-of-a-scan) |
# | memory grows with every new shape | every variant stays | 05 [Every variant stays](05_retracing/05_retracing.ipynb#Every-variant-stays) |
# | memory grows with every step of an evaluation | a list of full arrays | 08 [The same masks, three ways](08_memory/08_memory.ipynb#The-same-masks,-three-ways) |
# | worker killed, `BrokenProcessPool` | a cache in each worker | 08 [A cache is a number](08_memory/08_memory.ipynb#A-cache-is-a-number) |
# | after `del` or an error the memory stays full | an output or a traceback holds it | 08 [What stays alive](08_memory/08_memory.ipynb#What-stays-alive) |
# | loading weights takes twice their size | they were made on the device first | 08b [Between host and device](08_memory/08b_device_memory.ipynb#Between-host-and-device) |
# | the GPU is full before anything ran | JAX takes its share at the start | 08b [Allocator settings](08_memory/08b_device_memory.ipynb#Allocator-settings) |

# %% [markdown]
# ### Speed, and what was measured
#
# | what you see | often because | read |
# |---|---|---|
# | two people time the same function, a hundredfold apart | one of them did not wait | 07 [What one call is made of](07_honest_timing/07_honest_timing.ipynb#What-one-call-is-made-of) |
# | the first call is in the average | cold and warm | 07 [Cold and warm](07_honest_timing/07_honest_timing.ipynb#Cold-and-warm) |
# | a comparison turns round when it is run again | the arms ran one after the other | 07 [Numbers that hold](07_honest_timing/07_honest_timing.ipynb#Numbers-that-hold) |
# | the device is idle, utilisation is low and spiky | someone waits for someone | 10 [Who waits for whom](10_feeding_the_device/10_feeding_the_device.ipynb#Who-waits-for-whom) |
# | the loop stalls on each step | a value is fetched: `float`, `print`, `if` | 10 [Lines that wait](10_feeding_the_device/10_feeding_the_device.ipynb#Lines-that-wait) |
# | the device idles, the code is right, the profile is gaps | many small programs | 09 [What one call starts](09_fusion/09_fusion.ipynb#What-one-call-starts) |
# | evaluation is slower than training | nobody compiled it | 09 [Many small programs, or one](09_fusion/09_fusion.ipynb#Many-small-programs,-or-one) |
# | a NumPy batch makes each call slow | it is converted and copied each time | 07 [What crosses the boundary](07_honest_timing/07_honest_timing.ipynb#What-crosses-the-boundary) |
# | the loader hangs, or its errors vanish | a thread without a bound or a way out | 10 [A thread that reads ahead](10_feeding_the_device/10_feeding_the_device.ipynb#A-thread-that-reads-ahead) |

# %% [markdown]
# ### Several devices, long runs
#
# | what you see | often because | read |
# |---|---|---|
# | slower on eight devices than on one | a layout that has to travel | 11 [What has to travel](11_devices/11_devices.ipynb#What-has-to-travel) |
# | the gradient is eight times too large, or too small | who adds it up | 11 [Who adds up the gradient](11_devices/11_devices.ipynb#Who-adds-up-the-gradient) |
# | the loss differs on eight devices | a mean of means over unequal shares | 11 [Break it](11_devices/11_devices.ipynb#Break-it) |
# | each device draws the same noise | one key for all | 11 [Break it](11_devices/11_devices.ipynb#Break-it) |
# | each process draws the same noise | a local index repeats | 11 [Two processes](11_devices/11_devices.ipynb#Two-processes) |
# | a new layout compiles again | a sharding is part of the contract | 11 [Another layout is another program](11_devices/11_devices.ipynb#Another-layout-is-another-program) |
# | the job stands still at its start, or dies with exit code −6 | a process is missing | 11 [When the other one is missing](11_devices/11_devices.ipynb#When-the-other-one-is-missing) |
# | a checkpoint is cut off, or a resumed run is another run | not renamed into place; something is not in it | 10 [A run that can be stopped](10_feeding_the_device/10_feeding_the_device.ipynb#A-run-that-can-be-stopped) |
# | somebody's repository and a new loss term | what to run before you touch it | 12 [From the outside in](12_research_repo/12_research_repo.ipynb#From-the-outside-in) |

# %% [markdown]
# ## Beside the lessons
#
# - [From PyTorch to JAX](torch_to_jax/torch_to_jax.ipynb): what you write in PyTorch, what it becomes, and the lesson that is about it. Both
#   were run.
# - [What do you know already?](inventory/inventory.ipynb): twenty-four questions, before lesson 01 and after the last. What did the
#   course change?

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
