package dev.nereid.scheduler.request;

/**
 * The observer of a request that is part of another one, such as that of a step of an ensemble.
 *
 * <p>It counts in the limits of its model alone: those of the server have admitted the other one, which must not be
 * refused when it is half done.
 */
public interface PartOfRequest {}
