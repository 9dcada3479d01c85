"""The weave optimiser: which window aggregates share a tree.

    windows      a query's fragments and edges                       Weave Share §3.2, §4.1
    density      edge rate, exact or with a stated error             §4.1, §4.4
    counts       cells of a fragment: groups × signatures            §5.3
    cost         the paper's costs, and Spark's                      §4.2
    plan         plans as values, their cost, weaveability           §4.2, §4.3
    space        edge bitmaps                                        §8.2
    forest       trees under construction
    greedy       Weave Share                                         §5.1
    textbook     the same to the letter, its optimisations switched  §8
    local        local search, and improvement of a woven plan       §6
    baselines    No Share, Shared, Random, Insert-then-Weave, exhaustive
    factor       one base pane set that feeds the trees              beyond the paper
    incremental  adding and deleting queries                         §5.2
    adaptive     when the stream has changed enough to weave anew    beyond the paper

Everything here is values and pure functions over them; nothing knows Spark or the catalog.
"""
