/** Control of whole models: tasks, loads and the repository. */
@NullMarked
package dev.nereid.server.control;

import org.jspecify.annotations.NullMarked;
