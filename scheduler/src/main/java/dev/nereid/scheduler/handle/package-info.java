/**
 * Objects by which a plugin ends what it uses of a request, and what finds the ones that it forgets. Starting point: {@link
 * dev.nereid.scheduler.handle.PluginHandles}.
 */
@NullMarked
package dev.nereid.scheduler.handle;

import org.jspecify.annotations.NullMarked;
