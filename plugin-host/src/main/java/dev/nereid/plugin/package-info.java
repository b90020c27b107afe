/**
 * Plugins and their backends. Plugins are jars found in directories, each with a separate class loader.
 *
 * <p>Starting points: {@link dev.nereid.plugin.BackendRegistry}, and
 * {@link dev.nereid.plugin.CachePlugin} for the one plugin with a cache. Every call into a plugin passes its
 * {@code PluginBoundary}.
 */
@NullMarked
package dev.nereid.plugin;

import org.jspecify.annotations.NullMarked;
