package dev.nereid.spi;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks a part of the SPI that may still change in a minor version.
 *
 * <p>No server implements it yet, unless it says otherwise. A plugin that uses it compiles, but may have to be changed
 * for the next version. The check of the SPI's binary compatibility leaves it out.
 *
 * @since 1.0
 */
@Documented
@Retention(RetentionPolicy.CLASS)
@Target({ElementType.TYPE, ElementType.METHOD, ElementType.CONSTRUCTOR, ElementType.FIELD})
public @interface Incubating {}
