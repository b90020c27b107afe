/**
 * Tests of plugins, with plugins that are compiled by the tests.
 *
 * <p>Starting point: {@link dev.nereid.server.plugin.PluginJar}.
 */
@NullMarked
package dev.nereid.server.plugin;

import org.jspecify.annotations.NullMarked;
