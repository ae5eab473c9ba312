<%@ page session="false" contentType="text/html; charset=UTF-8" %><%
// Fess answers a path that nobody serves with a redirect to its error page.
String uri = (String) request.getAttribute("jakarta.servlet.error.request_uri");
response.sendRedirect(request.getContextPath() + "/error/notfound/?url=" + java.net.URLEncoder.encode(uri, "UTF-8"));
%>
