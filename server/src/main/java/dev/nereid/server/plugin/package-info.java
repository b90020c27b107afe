/**
 * Plugins and their backends. Plugins are jars found in directories, each with a separate class loader.
 *
 * <p>Starting points: {@link dev.nereid.server.plugin.BackendRegistry}, and
 * {@link dev.nereid.server.plugin.CachePlugin} for the one plugin with a cache. Every call into a plugin passes its
 * {@code PluginBoundary}.
 */
@NullMarked
package dev.nereid.server.plugin;

import org.jspecify.annotations.NullMarked;
