#include "protocols/protocol.h"
#include "protocols/reno.h"

namespace remy {

namespace {

// RFC 8257. Every packet is acknowledged with its own mark, so the receiver's part (section 3.2)
// has nothing to do.
class Dctcp : public Reno {
 public:
  Dctcp(double initial_window_packets, double gain) : Reno(initial_window_packets), gain_(gain) {}

  void on_sent(const SendEvent& sent) override {
    observation_.on_sent(sent);
    reaction_.on_sent(sent);
  }

 private:
  void restarted(double) override {
    // Section 4.2: with 1 the first reaction is a halving, as anybody's.
    marked_share_ = 1;
    packets_ = 0;
    marked_ = 0;
    observation_.restart();
    reaction_.restart();
    has_reacted_ = false;
  }

  void measured(const AckEvent& ack) override {
    // Section 3.3, steps 1 to 9: the share of marks in a window, averaged over windows.
    packets_ += static_cast<double>(ack.newly_delivered);
    marked_ += static_cast<double>(ack.newly_marked);
    if (observation_.ends(ack) && packets_ > 0) {
      marked_share_ += gain_ * (marked_ / packets_ - marked_share_);
      packets_ = 0;
      marked_ = 0;
    }
    // Step 10, and RFC 3168, section 6.1.2: reduced by half the share of marks, once in a window
    // of data. Where a loss has reduced it, recovery has that window.
    if (has_reacted_ && reaction_.ends(ack)) {
      has_reacted_ = false;
    }
    if (ack.newly_marked > 0 && !has_reacted_ && !ack.in_recovery) {
      reduce_to(cwnd_ * (1 - marked_share_ / 2));
      has_reacted_ = true;
      reaction_.restart();
    }
  }

  // Section 3.5: a loss halves the window, as in any TCP; that is Reno's.

  double gain_;
  double marked_share_ = 1;  // DCTCP.Alpha
  double packets_ = 0;
  double marked_ = 0;
  Rounds observation_;
  Rounds reaction_;
  bool has_reacted_ = false;
};

}  // namespace

Protocol dctcp() {
  return {
      .name = "dctcp",
      .title = "Data Center TCP",
      .variants = {{
          .name = "rfc8257",
          .source = "RFC 8257 (2017)",
          .parameters = {initial_window_packets(10),
                         {"gain", "of the marked share's average, in a window", 1.0 / 16, 0.001,
                          1}},
      }},
      .needs = {.is_ecn_capable = true},
      .make = [](const Chosen& chosen, std::uint64_t) -> std::unique_ptr<CongestionController> {
        return std::make_unique<Dctcp>(chosen["initial_window_packets"], chosen["gain"]);
      },
  };
}

}  // namespace remy
