/**
 * The jars of plugins on disk, with their checks, private copies and class loaders.
 *
 * <p>Starting points: {@link dev.nereid.plugin.jar.PluginDirectory}, which finds them, and
 * {@link dev.nereid.plugin.jar.JarCopies}.
 */
@NullMarked
package dev.nereid.plugin.jar;

import org.jspecify.annotations.NullMarked;
