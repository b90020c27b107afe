package dev.nereid.distribution.testing;

import com.sun.jdi.Bootstrap;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.VMDisconnectedException;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.connect.AttachingConnector;
import com.sun.jdi.connect.Connector;
import com.sun.jdi.connect.IllegalConnectorArgumentsException;
import com.sun.jdi.event.BreakpointEvent;
import com.sun.jdi.event.ClassPrepareEvent;
import com.sun.jdi.event.Event;
import com.sun.jdi.event.EventSet;
import com.sun.jdi.request.BreakpointRequest;
import com.sun.jdi.request.ClassPrepareRequest;
import com.sun.jdi.request.EventRequest;
import java.io.IOException;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;

/**
 * A debugger as IDEs are: waits for a class, sets a breakpoint in a method, and redefines the class when it is reached.
 * Confined to the test's thread.
 */
public final class Debugger {
    /** Reads what a debugger shows at a breakpoint. */
    public interface Stop {
        /** Called with the thread of the breakpoint suspended. */
        void at(BreakpointEvent event) throws Exception;
    }

    private static final Duration TIMEOUT = Duration.ofMinutes(2);

    private final VirtualMachine vm;
    private final Set<Long> loaders = new LinkedHashSet<>();
    private boolean stopped;

    private Debugger(VirtualMachine vm) {
        this.vm = vm;
    }

    /** Connects to a JVM that listens. */
    public static Debugger attach(int port) throws IOException, IllegalConnectorArgumentsException {
        AttachingConnector sockets = Bootstrap.virtualMachineManager().attachingConnectors().stream()
                .filter(connector -> connector.transport().name().equals("dt_socket"))
                .findFirst()
                .orElseThrow();
        Map<String, Connector.Argument> arguments = sockets.defaultArguments();
        arguments.get("hostname").setValue("127.0.0.1");
        arguments.get("port").setValue(String.valueOf(port));
        return new Debugger(sockets.attach(arguments));
    }

    /**
     * Follows the JVM to its end.
     *
     * @param type the name of classes whose method has a breakpoint, until it was reached once
     * @param method the method
     * @param stop called at the breakpoint
     * @return the numbers of the class loaders that had such a class
     */
    public Set<Long> follow(String type, String method, Stop stop) throws Exception {
        ClassPrepareRequest classes = vm.eventRequestManager().createClassPrepareRequest();
        classes.addClassFilter(type);
        classes.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
        classes.enable();
        vm.resume();
        try {
            while (true) {
                EventSet events = vm.eventQueue().remove(TIMEOUT.toMillis());
                if (events == null) {
                    throw new AssertionError("nothing happens in the server");
                }
                for (Event event : events) {
                    handle(event, method, stop);
                }
                events.resume();
            }
        } catch (VMDisconnectedException e) {
            return loaders;
        }
    }

    /** Replaces a class by another version of it, as IDEs reload changed classes. */
    public void redefine(ReferenceType type, byte[] content) {
        vm.redefineClasses(Map.of(type, content));
    }

    private void handle(Event event, String method, Stop stop) throws Exception {
        if (event instanceof ClassPrepareEvent prepared) {
            ReferenceType type = prepared.referenceType();
            loaders.add(type.classLoader().uniqueID());
            if (!stopped) {
                BreakpointRequest breakpoint = vm.eventRequestManager()
                        .createBreakpointRequest(
                                type.methodsByName(method).getFirst().location());
                breakpoint.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
                breakpoint.enable();
            }
        } else if (event instanceof BreakpointEvent reached) {
            stopped = true;
            event.request().disable();
            stop.at(reached);
        }
    }
}
