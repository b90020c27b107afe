/** Tests of plugin jars and their copies. */
@NullMarked
package dev.nereid.plugin.jar;

import org.jspecify.annotations.NullMarked;
