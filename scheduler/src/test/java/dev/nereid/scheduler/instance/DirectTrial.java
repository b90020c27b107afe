package dev.nereid.scheduler.instance;

/** Ends the trial of a model that declares its executions short. */
public final class DirectTrial {
    private DirectTrial() {}

    /** Records short executions on an instance's thread until the declaration is trusted, if there is one. */
    public static void pass(DirectExecutionPolicy executions) {
        for (int i = 0; i < DirectExecutionPolicy.TRIAL; i++) {
            executions.recordOnInstanceThread(0);
        }
    }
}
