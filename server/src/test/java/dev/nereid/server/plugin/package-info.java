/**
 * Plugins: discovery, class loaders, isolation, and the backends and caches in them.
 *
 * <p>Starting point: {@link dev.nereid.server.plugin.PluginJar}.
 */
@NullMarked
package dev.nereid.server.plugin;

import org.jspecify.annotations.NullMarked;
