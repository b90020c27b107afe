/** Instances of a model: plans, creation and replacement. */
@NullMarked
package dev.nereid.server.instance;

import org.jspecify.annotations.NullMarked;
