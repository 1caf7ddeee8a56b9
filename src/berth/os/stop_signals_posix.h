// The stop signals of this process as posix_env() sees them, after install_stop_signals(). A
// handler counts them and wakes whoever polls their descriptor. Any thread may ask.
#pragma once

namespace berth::os {

/// Does what one more stop signal would do. Signal handlers may call it.
void request_stop_posix();
/// Returns how many have come.
int stop_signals_posix();
/// Returns true if one of them was SIGINT.
bool interrupted_posix();
/// Returns the descriptor, which is readable when one has come; -1 before install_stop_signals().
int stop_signals_descriptor();
/// Makes the descriptor unreadable until the next comes.
void clear_stop_signals_descriptor();

}  // namespace berth::os
