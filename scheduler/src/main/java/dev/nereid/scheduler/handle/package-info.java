/**
 * Handles by which a plugin ends its use of senders and inputs, and the detection of forgotten handles. Starting point:
 * {@link dev.nereid.scheduler.handle.PluginHandles}.
 */
@NullMarked
package dev.nereid.scheduler.handle;

import org.jspecify.annotations.NullMarked;
