/** Lifecycle of model versions: preparation, loading, updates and unloading. */
@NullMarked
package dev.nereid.server.lifecycle;

import org.jspecify.annotations.NullMarked;
