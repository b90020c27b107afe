/** Tests of plugin jars and their copies. */
@NullMarked
package dev.nereid.server.plugin.jar;

import org.jspecify.annotations.NullMarked;
