package dev.nereid.scheduler;

/** Ends the thread of an instance for which the world ended on another thread, to which its seat was lent. */
final class DeathWhileLent extends RuntimeException {
    private static final long serialVersionUID = 1;

    DeathWhileLent(Throwable cause) {
        super("instance failed beyond repair on a thread that submitted a request", cause);
    }
}
