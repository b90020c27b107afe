package dev.nereid.benchmarks.gpu;

import java.io.PrintStream;
import java.util.Locale;

/** Runs checks and prints a line for each. Confined to one thread. */
final class CheckList {
    private static final int WIDTH = 44;

    private final PrintStream out;
    private int passed;
    private int failed;
    private int skipped;

    CheckList(PrintStream out) {
        this.out = out;
    }

    /** Something that holds or not. */
    @FunctionalInterface
    interface Check {
        /**
         * Runs the check; returns figures of interest.
         *
         * @throws Exception if it does not hold, with the reason; {@link SkippedException} if it cannot be run here
         */
        String run() throws Exception;
    }

    /** Skips a check that lacks a requirement, which the message names. */
    static final class SkippedException extends Exception {
        @java.io.Serial
        private static final long serialVersionUID = 1;

        SkippedException(String reason) {
            super(reason);
        }
    }

    void part(String title) {
        out.println();
        out.println(title);
    }

    @SuppressWarnings("IllegalCatch") // whatever is thrown, the other checks are run
    void check(String name, Check check) {
        long start = System.nanoTime();
        try {
            String figures = check.run();
            passed++;
            print("PASS", name, figures, start);
        } catch (SkippedException e) {
            skipped++;
            print("SKIP", name, String.valueOf(e.getMessage()), start);
        } catch (Exception | AssertionError | LinkageError e) {
            failed++;
            print("FAIL", name, e.getMessage() == null ? e.toString() : e.getMessage(), start);
        }
    }

    private void print(String result, String name, String text, long start) {
        double seconds = (System.nanoTime() - start) / 1e9;
        out.println(String.format(Locale.ROOT, "%s  %-" + WIDTH + "s %5.1f s  %s", result, name, seconds, text));
        out.flush();
    }

    /** Prints the sums. Returns whether no check failed. */
    boolean end() {
        out.println();
        out.println(passed + " passed, " + failed + " failed, " + skipped + " skipped");
        return failed == 0;
    }

    /** Throws unless something holds. */
    static void require(boolean holds, String otherwise) throws Exception {
        if (!holds) {
            throw new Exception(otherwise);
        }
    }

    @SuppressWarnings("AnnotateFormatMethod") // no dependency for one annotation
    static String format(String format, Object... values) {
        return String.format(Locale.ROOT, format, values);
    }
}
