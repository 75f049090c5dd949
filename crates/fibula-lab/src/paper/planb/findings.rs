//! What the committed records find otherwise than the paper.

use super::super::definition::Finding;

pub(super) const ALL: &[Finding] = &[
    Finding {
        exhibit: "figure-7",
        text: "With all rules of a router, the schemes differ less than published: PlanB forwards 1.2 to 1.6 times as fast as Poptrie, 1.4 to \
               1.6 times as fast as CP-Trie, 1.0 to 1.2 times as fast as Neurotrie, and 1.8 to 2.7 times as fast as HBS. A packet \
               takes some 45 ns without its lookup, whatever the scheme; PlanB's lookup takes about 10 ns, and no scheme can forward much faster \
               than that leaves. The paper's lookups have threads of their own, and its packets no rules but the route.",
    },
    Finding {
        exhibit: "figure-8",
        text: "HBS is slower than published: PlanB is 7 to 11 times as fast, not 1.4 to 5.6 times. A search takes 2.2 steps on \
               average for an address below one of the real table's routes, or 51 ns. With one in a thousand of the routes, where \
               everything fits the first cache, it still takes 36 ns: most of the time goes to instructions and mispredicted \
               branches. The published 85 million lookups a second leave 12 ns for a whole search; how that was reached is not in the \
               paper.",
    },
    Finding {
        exhibit: "figure-8",
        text: "Neurotrie is faster than published: PlanB is 1.2 to 2.9 times as fast, not 4.3 to 9.6 times. Its strides are chosen by \
               dynamic programming here, which finds the fewest accesses for the memory that it may take, and it takes much: 28 MB \
               for the real table of 2024, 13 times as much as PlanB. The budget of the paper's Neurotrie is not printed.",
    },
    Finding {
        exhibit: "figure-8",
        text: "PlanB's rate does depend on the table here. The structure has 0.5 MB for the table of 2019, which fits the second \
               cache of 1 MB, and 9 MB for a million prefixes, which does not.",
    },
    Finding {
        exhibit: "figure-12",
        text: "The unmerged form, which is the paper's, takes 0.8 to 2.9 times as much memory as Poptrie. Poptrie takes 1.8 MB here \
               for the table of 2019 and 5.4 MB for a million prefixes, as equal leaves of a node are stored once. With equal \
               neighbours merged, PlanB takes 0.3 to 0.8 times as much as Poptrie for up to 500,000 prefixes.",
    },
    Finding {
        exhibit: "figure-13",
        text: "A change of PlanB costs as much as one of Poptrie for the table of 2019, and 7 times as much for a million prefixes. \
               PlanB is built anew for each batch, so that a change costs a share of the whole table; Poptrie changes what is below a \
               prefix. A larger batch would help PlanB, and delay each change.",
    },
];
