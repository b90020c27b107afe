/**
 * The flags of the command line. A flag is a field of an options' builder, such as {@link
 * dev.nereid.server.options.ServerOptions.Builder}, and a call of {@link dev.nereid.distribution.flags.Flags#add}, which
 * sets the field and prints its default.
 */
@NullMarked
package dev.nereid.distribution.flags;

import org.jspecify.annotations.NullMarked;
