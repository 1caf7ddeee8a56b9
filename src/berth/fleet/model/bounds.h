// The bounds of figures in a fleet document, which keep every sum of them within a double's exact
// integers or far from its range.
#pragma once

namespace berth::fleet {

inline constexpr double kMostAmount = 1e12;  // of anything that has no narrower bound
inline constexpr double kMostMoney = 1e9;    // cents an hour
inline constexpr double kMostTimeMs = 1e9;
inline constexpr double kMostUnits = 1e9;  // of a type of accelerators
inline constexpr int kMostCount = 1'000'000;
inline constexpr double kMostPort = 65535, kMostCores = 10'000, kMostGigabytes = 1e6;  // a replica

}  // namespace berth::fleet
