#pragma once

namespace remy {

// The constants of a path model (senders/path_model.h), which a table's specification sets.
struct PathSettings {
  double epoch_rounds = 16;          // round trips in an epoch of the base RTT
  double drain_rise = 1.0 / 32;      // relative rise of an epoch's least RTT that calls for a drain
  double drain_fraction = 0.5;       // of the last round's delivery, in flight during a drain
  double tolerated_loss = 1.0 / 32;  // fraction of packets whose loss causes no debt
  double loss_debt_packets = 6;      // debt at which the window is capped
  double loss_window = 7.0 / 8;      // of the last round's delivery, to which it is capped
  double growth_packets = 0.25;      // growth of the cap in a round, times the round's number
  double paced_share = 1.1;          // of the cap that is sent in a smoothed RTT at most
  double least_window_packets = 2;
  double held_ack_rtts = 0.3;        // gap between ACKs, in RTTs, from which ACKs count as held
  double held_ack_window = 1.2;      // gaps over which the least RTT counts while ACKs are held
  double standing_rtt = 3;           // least RTT of a round, over the base, from which it drains
  double standing_fraction = 0.5;
  double reference_ms = 0;
  double reference_mode = 0;
  double xa = 0;
  double xb = 0;
  double xc = 0;
  double xd = 0;
  double xe = 0;
  double xf = 0;
  double xg = 0;
  double xh = 0;
  double xi = 0;

  friend bool operator==(const PathSettings&, const PathSettings&) = default;
};

}  // namespace remy
