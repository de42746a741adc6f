#pragma once

#include <cstddef>
#include <cstdint>

// A network to be watched and changed while it runs, for callers that have nothing but numbers: a
// browser's worker, by WebAssembly, and Python's ctypes. Numbers are doubles that the caller writes
// to a room of the stage's, and reads from another. There is one stage; who needs two loads the
// module twice.
//
// A call that refuses its numbers ends with a trap in WebAssembly, where nothing can be thrown: the
// sentence is at remy_live_refusal(), and the module is of no more use. Natively it throws.

extern "C" {

// Room for so many numbers, until the next call of this function.
double* remy_live_room(std::size_t numbers);

// One more RemyCC from the room's numbers: whether rules are scale-free, the upper end of the
// domain, the number of signals, these, and for each node in pre-order the number of thresholds
// with (signal, value) each; or 0 and the action's window multiple, window increment and intersend
// time. Returns its number, from 0.
std::uint32_t remy_live_add_table(std::size_t numbers);

// A network of one link at time 0, from the room's numbers: seed, link (as below), mean of the
// exponential jitter with which RemyCCs see ACKs in ms, mean on and off times in ms, number of
// senders, and of each what it runs: the number of a table, or -1 - the number of a protocol. All
// senders are off, and held.
void remy_live_start(std::size_t numbers);

// From the room's numbers: link rate in packets a ms, RTT in ms, buffer in packets (negative: as
// large as it takes), probability of a loss, number of a queue discipline.
void remy_live_change_link(std::size_t numbers);

// 0: held off, 1: held on, 2: left to its traffic.
void remy_live_switch(std::uint32_t sender, std::uint32_t how);

// Runs up to until_ms and takes a sample at the end of every step of so many ms. Returns how many.
// Of each: time in ms; packets that wait, and that were dropped and lost so far; then of each
// sender whether it is on, window in packets, intersend in ms, the last RTT in ms, packets in
// flight, packets received, lost, sum of the RTTs of these in ms; the rule that it used last (-1:
// none), and the memory by which that was looked up (four numbers).
std::uint32_t remy_live_run(double until_ms, double step_ms);
const double* remy_live_samples();

// Of the bits of all samples since the start.
std::uint64_t remy_live_digest();

// Lines of "name, tab, title" in the order of their numbers: protocols, queue disciplines.
const char* remy_live_protocols();
const char* remy_live_queues();

// Why a call ended.
const char* remy_live_refusal();
}
