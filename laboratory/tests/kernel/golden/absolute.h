/* The table with the SHA-256 a15c0929da23353e3604684c048dd46792bf3341f5b077fa5792b743e363fec9. */
#define REMY_SCALE_FREE 0
#define REMY_USES_AGE 0
#define REMY_RULES 5
#define REMY_RULE_SLOTS 8
#define REMY_NODE_SLOTS 2
#define REMY_DEPTH 2
#define REMY_START_RULE 0
#define REMY_DEADBAND_US 0u

REMY_DATA struct remy_node remy_nodes[REMY_NODE_SLOTS] = {
    {{1572864000ull, 18446744073709551615ull, 17825792ull, 18446744073709551615ull},
     {-1, -2, 0, 0, -3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {{18446744073709551615ull, 0ull, 18446744073709551615ull, 18446744073709551615ull},
     {-4, 0, -5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
};

REMY_DATA struct remy_absolute remy_actions[REMY_RULE_SLOTS] = {
    {0ull, 16602069666338596864ull, 0ull, 2ll, 0ull, 1048576000ull},
    {0ull, 13835058055282163712ull, 0ull, -3ll, 0ull, 262144000ull},
    {1ull, 0ull, 0ull, 1ll, 0ull, 0ull}, {0ull, 0ull, 0ull, 5ll, 0ull, 2097152000ull},
    {1ull, 4611686018427387904ull, 0ull, 0ll, 9223372036854775808ull, 12897484800ull},
};
