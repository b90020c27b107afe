/**
 * Plugins: jars found in folders, each with a class loader of its own, and the backends they bring.
 *
 * <p>Starting points: {@link dev.nereid.server.plugin.BackendRegistry}, and
 * {@link dev.nereid.server.plugin.CachePlugin} for the one plugin that brings a cache. Everything that calls into a
 * plugin goes through its {@code PluginBoundary}.
 */
@NullMarked
package dev.nereid.server.plugin;

import org.jspecify.annotations.NullMarked;
