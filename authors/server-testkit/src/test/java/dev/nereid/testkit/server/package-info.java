@NullMarked
package dev.nereid.testkit.server;

import org.jspecify.annotations.NullMarked;
