/**
 * The jars of plugins on disk, with their checks, private copies and class loaders.
 *
 * <p>Starting points: {@link dev.nereid.server.plugin.jar.PluginDirectory}, which finds them, and
 * {@link dev.nereid.server.plugin.jar.JarCopies}.
 */
@NullMarked
package dev.nereid.server.plugin.jar;

import org.jspecify.annotations.NullMarked;
