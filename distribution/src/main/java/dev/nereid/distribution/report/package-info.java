/** The start-up report: tables of models, endpoints and options. */
@NullMarked
package dev.nereid.distribution.report;

import org.jspecify.annotations.NullMarked;
