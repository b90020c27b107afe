/** Classification: replaces an output by its largest elements, with their indices and labels. */
@NullMarked
package dev.nereid.server.classification;

import org.jspecify.annotations.NullMarked;
