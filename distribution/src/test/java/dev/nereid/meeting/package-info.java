/** A plugin for tests, packed by them: a backend whose models are executed at the same time, or not at all. */
@NullMarked
package dev.nereid.meeting;

import org.jspecify.annotations.NullMarked;
