package dev.nereid.backend.python.posix;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/**
 * Functions of the C library for sockets, on Linux. Stateless; safe for use by any thread.
 *
 * <p>Sockets of the JDK wait for a socket in a selector before they write without blocking, which takes longer than the
 * exchange with a process.
 */
public final class SocketCalls {
    /** The result of {@link #send} if nothing can be sent now. */
    public static final long FULL = -1;

    /** The result of {@link #receive} if nothing has come in time. */
    public static final long LATE = -1;

    /** The result of {@link #send} and {@link #receive} if the other side is gone. */
    public static final long GONE = 0;

    private static final int AF_UNIX = 1;
    private static final int SOCK_STREAM = 1;
    private static final int SOCK_CLOEXEC = 0x80000;
    private static final int MSG_DONTWAIT = 0x40;
    private static final int MSG_NOSIGNAL = 0x4000;
    private static final int SHUT_RDWR = 2;
    private static final short POLLIN = 1;
    private static final short POLLOUT = 4;
    private static final int EINTR = 4;
    private static final int EAGAIN = 11;
    private static final int SUN_PATH = 108;
    private static final int SOL_SOCKET = 1;
    private static final int SO_RCVTIMEO = 20;
    private static final int SO_PEERCRED = 17;

    /** The size of {@code struct ucred}: numbers of the process, the user and the group. */
    private static final int CREDENTIALS = 3 * Integer.BYTES;

    private static final MethodHandle SOCKET =
            CLibrary.failing("socket", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT));
    private static final MethodHandle BIND =
            CLibrary.failing("bind", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT));
    private static final MethodHandle LISTEN =
            CLibrary.failing("listen", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT));
    private static final MethodHandle ACCEPT =
            CLibrary.failing("accept4", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, ADDRESS, JAVA_INT));
    private static final MethodHandle POLL =
            CLibrary.failing("poll", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT));
    private static final MethodHandle SEND =
            CLibrary.failing("send", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT));
    private static final MethodHandle RECEIVE =
            CLibrary.failing("recv", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT));
    private static final MethodHandle SET_OPTION = CLibrary.failing(
            "setsockopt", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT));
    private static final MethodHandle GET_OPTION = CLibrary.failing(
            "getsockopt", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, ADDRESS, ADDRESS));
    private static final MethodHandle USER = CLibrary.bind("geteuid", FunctionDescriptor.of(JAVA_INT));
    private static final MethodHandle SHUTDOWN =
            CLibrary.failing("shutdown", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT));
    private static final MethodHandle CLOSE = CLibrary.failing("close", FunctionDescriptor.of(JAVA_INT, JAVA_INT));

    private SocketCalls() {}

    /**
     * Creates a socket that listens on an abstract name, which is in no directory and ends with the socket.
     *
     * @param name a name that no other socket has, at most 107 bytes long
     * @throws IOException if the name is too long, or the socket cannot be created
     */
    public static int listen(String name) throws IOException {
        byte[] bytes = name.getBytes(UTF_8);
        if (bytes.length >= SUN_PATH) {
            throw new IOException(name + ": " + bytes.length + " bytes (expected: at most " + (SUN_PATH - 1) + ")");
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = CLibrary.state(arena);
            int socket = (int) SOCKET.invokeExact(state, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (socket < 0) {
                throw CLibrary.failure("socket", state);
            }
            MemorySegment address = arena.allocate(Short.BYTES + 1 + bytes.length); // an abstract name begins with a 0
            address.set(JAVA_SHORT, 0, (short) AF_UNIX);
            MemorySegment.copy(bytes, 0, address, JAVA_BYTE, Short.BYTES + 1, bytes.length);
            if ((int) BIND.invokeExact(state, socket, address, (int) address.byteSize()) != 0
                    || (int) LISTEN.invokeExact(state, socket, 2) != 0) {
                PosixException failure = CLibrary.failure(name, state);
                close(socket);
                throw failure;
            }
            return socket;
        } catch (IOException e) {
            throw e;
        } catch (Throwable e) {
            throw CLibrary.notCalled("bind", e);
        }
    }

    /**
     * Accepts a connection of a process of the same user. One of another user is closed.
     *
     * @param millis how long this waits for one
     * @return the descriptor of the connection, or -1 if there is none yet
     */
    public static int accept(int socket, int millis) throws PosixException {
        try (Arena arena = Arena.ofConfined()) {
            if (!await(arena, socket, POLLIN, millis)) {
                return -1;
            }
            MemorySegment state = CLibrary.state(arena);
            int connection =
                    (int) ACCEPT.invokeExact(state, socket, MemorySegment.NULL, MemorySegment.NULL, SOCK_CLOEXEC);
            if (connection < 0) {
                throw CLibrary.failure("accept", state);
            }
            if (!isOfSameUser(arena, state, connection)) {
                close(connection);
                return -1;
            }
            return connection;
        } catch (PosixException e) {
            throw e;
        } catch (Throwable e) {
            throw CLibrary.notCalled("accept4", e);
        }
    }

    private static boolean isOfSameUser(Arena arena, MemorySegment state, int connection) throws Throwable {
        MemorySegment credentials = arena.allocate(CREDENTIALS, Integer.BYTES);
        MemorySegment size = arena.allocateFrom(JAVA_INT, CREDENTIALS);
        return (int) GET_OPTION.invokeExact(state, connection, SOL_SOCKET, SO_PEERCRED, credentials, size) == 0
                && credentials.get(JAVA_INT, Integer.BYTES) == (int) USER.invokeExact();
    }

    /** Waits at most {@code millis} to receive something; returns whether that can be, or the other side is gone. */
    public static boolean awaitReadable(int socket, int millis) {
        return await(socket, POLLIN, millis);
    }

    /** Waits at most {@code millis} to send something; returns whether that can be, or the other side is gone. */
    public static boolean awaitWritable(int socket, int millis) {
        return await(socket, POLLOUT, millis);
    }

    private static boolean await(int socket, short events, int millis) {
        try (Arena arena = Arena.ofConfined()) {
            return await(arena, socket, events, millis);
        } catch (Throwable e) {
            throw CLibrary.notCalled("poll", e);
        }
    }

    private static boolean await(Arena arena, int socket, short events, int millis) throws Throwable {
        MemorySegment state = CLibrary.state(arena);
        MemorySegment descriptors = arena.allocate(8, 4);
        descriptors.set(JAVA_INT, 0, socket);
        descriptors.set(JAVA_SHORT, 4, events);
        return (int) POLL.invokeExact(state, descriptors, 1L, millis) > 0;
    }

    /** Returns memory for {@link #send} and {@link #receive}, which the arena frees. */
    public static MemorySegment newState(Arena arena) {
        return CLibrary.state(arena);
    }

    /**
     * Sends native memory to a connected socket without blocking.
     *
     * @param state memory of {@link #newState} that no other thread uses meanwhile
     * @return the number of bytes sent, {@link #FULL}, or {@link #GONE}
     */
    public static long send(MemorySegment state, int socket, MemorySegment bytes) {
        try {
            while (true) {
                long sent =
                        (long) SEND.invokeExact(state, socket, bytes, bytes.byteSize(), MSG_DONTWAIT | MSG_NOSIGNAL);
                if (sent > 0) {
                    return sent;
                }
                int errno = CLibrary.errno(state);
                if (errno == EAGAIN) {
                    return FULL;
                } else if (errno != EINTR) {
                    return GONE;
                }
            }
        } catch (Throwable e) {
            throw CLibrary.notCalled("send", e);
        }
    }

    /** Limits the wait of {@link #receive} from a connected socket; fails if that does not take it. */
    public static void limitReceive(int socket, Duration limit) throws PosixException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = CLibrary.state(arena);
            MemorySegment time = arena.allocate(2 * JAVA_LONG.byteSize(), JAVA_LONG.byteAlignment());
            time.set(JAVA_LONG, 0, limit.toSeconds());
            time.set(JAVA_LONG, JAVA_LONG.byteSize(), TimeUnit.NANOSECONDS.toMicros(limit.toNanosPart()));
            if ((int) SET_OPTION.invokeExact(state, socket, SOL_SOCKET, SO_RCVTIMEO, time, (int) time.byteSize())
                    != 0) {
                throw CLibrary.failure("setsockopt", state);
            }
        } catch (PosixException e) {
            throw e;
        } catch (Throwable e) {
            throw CLibrary.notCalled("setsockopt", e);
        }
    }

    /**
     * Receives bytes into native memory, and waits for the first one, at most as long as {@link #limitReceive} says.
     *
     * @param state as of {@link #send}
     * @return the number of bytes received, {@link #LATE}, or {@link #GONE}
     */
    public static long receive(MemorySegment state, int socket, MemorySegment bytes) {
        try {
            while (true) {
                long received = (long) RECEIVE.invokeExact(state, socket, bytes, bytes.byteSize(), 0);
                if (received > 0) {
                    return received;
                }
                if (received == 0) {
                    return GONE;
                }
                int errno = CLibrary.errno(state);
                if (errno == EAGAIN) {
                    return LATE;
                } else if (errno != EINTR) {
                    return GONE;
                }
            }
        } catch (Throwable e) {
            throw CLibrary.notCalled("recv", e);
        }
    }

    /** Ends both directions of a connection: a thread that waits in {@link #receive} returns. */
    public static void shutdown(int socket) {
        try (Arena arena = Arena.ofConfined()) {
            int ignored = (int) SHUTDOWN.invokeExact(CLibrary.state(arena), socket, SHUT_RDWR);
        } catch (Throwable e) {
            throw CLibrary.notCalled("shutdown", e);
        }
    }

    /** Closes a descriptor, which no other thread uses. */
    public static void close(int descriptor) {
        try (Arena arena = Arena.ofConfined()) {
            int ignored = (int) CLOSE.invokeExact(CLibrary.state(arena), descriptor);
        } catch (Throwable e) {
            throw CLibrary.notCalled("close", e);
        }
    }
}
