package dev.nereid.scheduler.request;

/**
 * Observes a request that is part of another one, such as an ensemble step.
 *
 * <p>The request counts in the limits of its model alone. The limits of the server have admitted the other request,
 * which must not be refused when it is half done.
 */
public interface StepObserver {}
