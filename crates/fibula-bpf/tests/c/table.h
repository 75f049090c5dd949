/* The table of a test, and the words of 32 bits of its keys. IPV6 is defined for that family. */
#ifdef IPV6
FIBULA_IPV6(table);
#define WORDS 4
#else
FIBULA_IPV4(table);
#define WORDS 1
#endif
