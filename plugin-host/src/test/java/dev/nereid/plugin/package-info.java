/**
 * Plugins: discovery, class loaders, isolation, and the backends and caches in them.
 *
 * <p>Starting point: {@link dev.nereid.plugin.PluginJar}.
 */
@NullMarked
package dev.nereid.plugin;

import org.jspecify.annotations.NullMarked;
