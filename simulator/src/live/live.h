#pragma once

#include <cstddef>
#include <cstdint>

// A network that can be watched and changed while it runs, for callers that pass only numbers: a
// browser's worker, by WebAssembly, and Python's ctypes. The caller writes doubles to an input
// buffer and reads doubles from an output buffer. There is one network per module instance.
//
// Invalid input ends a call with a trap in WebAssembly, where exceptions are disabled: the message
// is at remy_live_refusal(), and the instance must not be used further. Native code throws.

extern "C" {

// Returns an input buffer for `numbers` doubles, valid until the next call of this function.
double* remy_live_input_buffer(std::size_t numbers);

// Adds a RemyCC from the input buffer: the kind of rules (0: absolute, 1: scale-free, 2: scale-free
// remembering), the upper end of the domain, 0, or 1 and the constants of its path model in the
// order of kPathFields, the number of signals, the signals, and for each node in pre-order the
// number of thresholds with (signal, value) each; or 0 and the action's window multiple, window
// increment and intersend time. Returns its number, from 0.
std::uint32_t remy_live_add_table(std::size_t numbers);

// Starts a network of one link at time 0, from the input buffer: seed, link (as below), mean of the
// exponential jitter in ms with which RemyCCs see ACKs, mean on and off times in ms, number of
// senders, and for each sender the number of its table, or -1 - the number of its protocol. All
// senders are held off.
void remy_live_start(std::size_t numbers);

// Changes the link, from the input buffer: rate in packets per ms, RTT in ms, buffer in packets
// (negative: unlimited), loss probability, number of a queue discipline.
void remy_live_change_link(std::size_t numbers);

// Switches a sender: 0: held off, 1: held on, 2: follows its traffic.
void remy_live_switch(std::uint32_t sender, std::uint32_t how);

// Runs up to until_ms and takes a sample after every step of step_ms. Returns the number of
// samples. A sample has: time in ms; packets waiting, and packets dropped and lost so far; then for
// each sender: 1 if it is on, else 0; window in packets; intersend time in ms; last RTT in ms;
// packets in flight; packets received and lost; sum of the RTTs of the received packets in ms; the
// rule used last (-1: none), and the memory values of all signals by which it was looked up. Those
// beyond the first four are 0 if the table looks at none of them.
std::uint32_t remy_live_run(double until_ms, double step_ms);
const double* remy_live_samples();

// Digest of all samples since the start, bit by bit, without signals that are not measured.
std::uint64_t remy_live_digest();

// Lines of name, tab, title, in the order of numbers.
const char* remy_live_protocols();
const char* remy_live_queues();

// The message of the call that was ended by a trap.
const char* remy_live_refusal();
}
