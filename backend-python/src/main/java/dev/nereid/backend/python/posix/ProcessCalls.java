package dev.nereid.backend.python.posix;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** Functions of the C library for processes and their groups, on Linux. Stateless; safe for use by any thread. */
public final class ProcessCalls {
    /** The signal upon which a process of a model writes the stacks of its threads. */
    public static final int SIGQUIT = 3;

    private static final int SIGKILL = 9;
    private static final int WNOHANG = 1;

    private static final MethodHandle KILL =
            CLibrary.failing("kill", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT));
    private static final MethodHandle WAIT =
            CLibrary.failing("waitpid", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT));

    private ProcessCalls() {}

    /** Kills the processes of a group by the number of its leader, above 1, which may have ended just now. */
    public static void killGroup(long leader) {
        if (leader > 1) {
            boolean _ = kill(-leader, SIGKILL);
        }
    }

    /**
     * Takes the statuses of ended processes of a group that are children of this process: the first process of a
     * container becomes the parent of orphans. Never waits.
     *
     * @param leader the number of the process that has made the group, for which somebody has waited already
     * @return whether this process has more children in the group
     */
    public static boolean reapGroup(long leader) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = CLibrary.state(arena);
            int reaped;
            do {
                reaped = (int) WAIT.invokeExact(state, Math.toIntExact(-leader), MemorySegment.NULL, WNOHANG);
            } while (reaped > 0);
            return reaped == 0;
        } catch (Throwable e) {
            throw CLibrary.notCalled("waitpid", e);
        }
    }

    /** Sends a signal to a process that has not been waited for; returns whether it was sent. */
    public static boolean kill(long process, int signal) {
        try (Arena arena = Arena.ofConfined()) {
            return (int) KILL.invokeExact(CLibrary.state(arena), Math.toIntExact(process), signal) == 0;
        } catch (Throwable e) {
            throw CLibrary.notCalled("kill", e);
        }
    }
}
