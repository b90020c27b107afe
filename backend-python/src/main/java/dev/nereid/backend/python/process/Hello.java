package dev.nereid.backend.python.process;

import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;

/**
 * First frame of a process: its Python and NumPy, or the problem that it has.
 *
 * @param executable the path of its program
 * @param prefix the directory of its environment
 * @param numpy the version of NumPy; empty if there is a problem
 * @param problem why it cannot run models; empty if it can
 * @param token the token of its command line
 */
public record Hello(
        long process, String python, String executable, String prefix, String numpy, String problem, String token) {
    private static final int VERSION = 1;

    static Hello read(FrameReader frame) {
        int major = frame.u16("version");
        int minor = frame.u16("version");
        if (major != VERSION) {
            throw new FrameException(
                    "version of the protocol: " + major + "." + minor + " (expected: " + VERSION + ".x)");
        }
        frame.u32("reserved");
        return new Hello(
                frame.u64("process"),
                frame.text("python"),
                frame.text("executable"),
                frame.text("prefix"),
                frame.text("numpy"),
                frame.text("problem"),
                frame.text("token"));
    }

    /** Returns Python and environment in a few words. */
    public String describe() {
        return "Python " + python + " at " + executable + " (environment " + prefix
                + (numpy.isEmpty() ? "" : ", NumPy " + numpy) + ")";
    }
}
