; nothing yet
(
